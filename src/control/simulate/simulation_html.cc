// SPDX-License-Identifier: Apache-2.0
// The report as one page: tables and SVG, no script, nothing from elsewhere.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "base/units.h"
#include "control/simulate/simulation.h"

namespace overcap {
namespace {

using pooled::GroupReport;
using pooled::UseOverTime;

constexpr double kWidth = 560, kHeight = 130, kLeft = 46, kBottom = 20, kTop = 8;

constexpr const char* kStyle =
    "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1240px;padding:0 "
    "1em;color:#222;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;font-variant-"
    "numeric:tabular-nums}"
    "td,th{padding:.2em .7em;border-bottom:1px solid "
    "#ddd;text-align:right}td:first-child,th:first-child{text-align:left}"
    ".plots{display:flex;flex-wrap:wrap;gap:1em}figure{margin:0}figcaption{font-weight:600}svg{background:#"
    "fafafa}"
    ".better{color:#17692f}.worse{color:#a3261d}.note{color:#666}text{font-size:11px;fill:#666}";

std::string Html(std::string_view text) {
  std::string out;
  for (const char c : ToUtf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Number(double value, int decimals = 1) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string Time(double seconds) {
  return seconds < 1 ? "0" : FormatDuration(static_cast<int64_t>(std::llround(seconds)));
}

std::string Line(const std::string& points, const char* color, const char* more = "") {
  return StrCat("<polyline fill=\"none\" stroke=\"", color, "\" stroke-width=\"1.5\" ", more, " points=\"",
                points, "\"/>");
}

// GPUs of a lab over time: what counts against its cap, above it what does not, and the cap.
std::string UsePlot(const UseOverTime& use, size_t lab, const GroupReport& report) {
  const std::vector<double>&in_cap = use.in_cap[lab], &overcap = use.overcap[lab];
  const size_t steps = in_cap.size();
  double most = std::max(1, report.gpu_cap);
  for (size_t i = 0; i < steps; ++i) most = std::max(most, in_cap[i] + overcap[i]);
  const auto x = [&](size_t i) {
    return kLeft +
           (kWidth - kLeft) * static_cast<double>(i) / static_cast<double>(std::max<size_t>(1, steps - 1));
  };
  const auto y = [&](double gpus) { return kTop + (kHeight - kTop - kBottom) * (1 - gpus / most); };
  const auto area = [&](const auto& height, const char* color) {
    std::string points = StrCat(Number(x(0)), ",", Number(y(0)));
    for (size_t i = 0; i < steps; ++i) points += StrCat(" ", Number(x(i)), ",", Number(y(height(i))));
    points += StrCat(" ", Number(x(steps == 0 ? 0 : steps - 1)), ",", Number(y(0)));
    return StrCat("<polygon fill=\"", color, "\" points=\"", points, "\"/>");
  };
  const std::string cap = Number(y(report.gpu_cap));
  std::string out = StrCat("<figure><figcaption>", Html(report.name), "</figcaption><svg width=\"",
                           Number(kWidth, 0), "\" height=\"", Number(kHeight, 0), "\" role=\"img\">");
  if (steps > 0) {
    out += area([&](size_t i) { return in_cap[i] + overcap[i]; }, "#f0b860");
    out += area([&](size_t i) { return in_cap[i]; }, "#4a7fb5");
  }
  out += StrCat("<line x1=\"", Number(kLeft), "\" x2=\"", Number(kWidth), "\" y1=\"", cap, "\" y2=\"", cap,
                "\" stroke=\"#a3261d\" stroke-dasharray=\"4 3\"/><text x=\"2\" y=\"", cap, "\">cap ",
                report.gpu_cap, "</text>");
  out += StrCat(
      "<text x=\"2\" y=\"", Number(kTop + 8), "\">", Number(most, 0), "</text><text x=\"", Number(kLeft),
      "\" y=\"", Number(kHeight - 5), "\">", FormatTimeUtc(use.from_s * 1'000'000).substr(0, 10),
      "</text><text text-anchor=\"end\" x=\"", Number(kWidth), "\" y=\"", Number(kHeight - 5), "\">",
      FormatTimeUtc((use.from_s + use.step_s * static_cast<int64_t>(steps)) * 1'000'000).substr(0, 10),
      "</text>");
  return out + "</svg></figure>";
}

// The part of jobs that has started after so long.
std::string WaitPlot(const Simulation& simulation, const Simulation* against) {
  const size_t steps = pooled::kWaitSteps.size();
  const double height = 240;
  const auto x = [&](size_t i) {
    return kLeft + (kWidth - kLeft - 10) * static_cast<double>(i) / static_cast<double>(steps - 1);
  };
  const auto y = [&](double part) { return kTop + (height - kTop - kBottom) * (1 - part); };
  const auto points = [&](const Simulation& one) {
    std::string text;
    for (size_t i = 0; i < steps; ++i)
      text += StrCat(i == 0 ? "" : " ", Number(x(i)), ",", Number(y(one.report.wait_histogram[i])));
    return text;
  };
  std::string out =
      StrCat("<svg width=\"", Number(kWidth, 0), "\" height=\"", Number(height, 0), "\" role=\"img\">");
  for (const double part : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    out += StrCat("<line stroke=\"#ddd\" x1=\"", Number(kLeft), "\" x2=\"", Number(kWidth), "\" y1=\"",
                  Number(y(part)), "\" y2=\"", Number(y(part)), "\"/><text x=\"6\" y=\"", Number(y(part) + 4),
                  "\">", Number(part * 100, 0), " %</text>");
  }
  for (size_t i = 0; i < steps; i += 3) {
    out += StrCat("<text text-anchor=\"middle\" x=\"", Number(x(i)), "\" y=\"", Number(height - 5), "\">",
                  pooled::kWaitSteps[i] == 0 ? "at once" : FormatDuration(pooled::kWaitSteps[i]), "</text>");
  }
  out += Line(points(simulation), "#4a7fb5");
  if (against != nullptr) out += Line(points(*against), "#a3261d", "stroke-dasharray=\"4 3\"");
  return out + "</svg>";
}

std::string Row(const GroupReport& group, bool lab) {
  std::string out = StrCat("<tr><td>", Html(group.name), "</td>");
  if (lab) out += StrCat("<td>", group.gpu_cap, "</td>");
  for (const std::string& cell :
       {std::to_string(group.jobs), Time(group.wait_mean_s), Time(group.wait_p50_s), Time(group.wait_p90_s),
        Number(group.slowdown_mean), Number(group.gpu_hours, 0), Number(group.overcap_gpu_hours, 0),
        std::to_string(group.preemptions), Number(group.lost_gpu_hours)})
    out += StrCat("<td>", cell, "</td>");
  return out + "</tr>\n";
}

std::string GroupTable(const std::vector<GroupReport>& groups, bool labs, size_t most) {
  std::string out = StrCat(
      "<table><tr><th>", labs ? "lab</th><th>cap" : "user",
      "</th><th>jobs</th><th>wait, mean</th><th>median</th><th>90 %</th><th>slow-down</th><th>GPU hours</th>"
      "<th>of them overcap</th><th>preempted</th><th>GPU hours lost</th></tr>\n");
  for (size_t i = 0; i < std::min(most, groups.size()); ++i) out += Row(groups[i], labs);
  out += "</table>";
  if (groups.size() > most)
    out += StrCat("<p class=\"note\">and ", groups.size() - most, " more: --json has all</p>");
  return out;
}

// "-" where there is nothing to compare: no job of the lab ran.
std::string DifferenceRow(const std::string& name, const GroupReport& now, const GroupReport& before) {
  const bool both = now.jobs > 0 && before.jobs > 0;
  const double change = both ? now.wait_mean_s - before.wait_mean_s : 0;
  const std::string_view style = change > 0.5 ? "worse" : change < -0.5 ? "better" : "";
  const std::string_view sign = change > 0.5 ? "+" : change < -0.5 ? "-" : "";
  const auto of = [](const GroupReport& one, std::string text) {
    return one.jobs > 0 ? std::move(text) : std::string("-");
  };
  return StrCat("<tr><td>", Html(name), "</td><td>", now.jobs, "</td><td>", before.jobs, "</td><td>",
                of(now, Time(now.wait_mean_s)), "</td><td>", of(before, Time(before.wait_mean_s)),
                "</td><td class=\"", style, "\">", both ? StrCat(sign, Time(std::fabs(change))) : "-",
                "</td><td>", of(now, Number(now.slowdown_mean)), "</td><td>",
                of(before, Number(before.slowdown_mean)), "</td><td>", now.preemptions, "</td><td>",
                before.preemptions, "</td><td>", Number(now.lost_gpu_hours), "</td><td>",
                Number(before.lost_gpu_hours), "</td></tr>\n");
}

std::string Notes(const Simulation& simulation) {
  std::string out;
  for (const std::string& note : simulation.report.notes)
    out += StrCat("<p class=\"note\">", Html(note), "</p>\n");
  return out;
}

std::string Difference(const Simulation& simulation, const Simulation& against) {
  std::string out = StrCat("<h2>Against ", Html(against.policy), ", by lab</h2>\n", Notes(against),
                           "<table><tr><th>lab</th><th>jobs</th><th>before</th><th>mean wait</th>"
                           "<th>before</th><th>difference</th><th>slow-down</th><th>before</th>"
                           "<th>preempted</th><th>before</th><th>GPU hours lost</th><th>before</th></tr>\n");
  for (const LabPair& lab : LabPairs(simulation, against))
    out += DifferenceRow(lab.name, lab.now, lab.before);
  return out + "</table>";
}

}  // namespace

std::string SimulationToHtml(const Simulation& simulation, const Simulation* against) {
  const pooled::ReplayReport& report = simulation.report;
  std::string out = StrCat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
                           Html(simulation.policy), "</title><style>", kStyle, "</style></head><body>\n<h1>",
                           Html(simulation.policy), " on ", Html(simulation.trace), "</h1>\n<p>");
  out += StrCat(report.all.jobs, " jobs on ", report.pool_gpus, " GPUs in ",
                FormatDuration(std::max<int64_t>(1, report.span_s)),
                "; in use: ", Number(report.use_while_waited * 100), " % while jobs came, ",
                Number(report.utilisation * 100),
                " % until the last one ended. Fairness (Jain's index of slow-downs): labs ",
                Number(report.lab_fairness, 2), ", users ", Number(report.user_fairness, 2), ".</p>\n");
  out += Notes(simulation);
  if (against != nullptr) out += Difference(simulation, *against);
  out += "<h2>Labs</h2>" + GroupTable(report.labs, true, 1000);
  out += "<h2>Waits: the part of jobs that had started after so long</h2>" + WaitPlot(simulation, against);
  if (against != nullptr)
    out += StrCat("<p class=\"note\">solid: ", Html(simulation.policy), ", dashed: ", Html(against->policy),
                  "</p>");
  out +=
      "<h2>GPUs in use by lab</h2><p class=\"note\">blue: counts against the cap; yellow: overcap; dashed: "
      "the cap</p><div class=\"plots\">";
  for (size_t lab = 0; lab < report.labs.size(); ++lab) {
    if (report.labs[lab].jobs > 0) out += UsePlot(simulation.use, lab, report.labs[lab]);
  }
  out += "</div><h2>Users</h2>" + GroupTable(report.users, false, 50);
  return out + "</body></html>\n";
}

}  // namespace overcap
