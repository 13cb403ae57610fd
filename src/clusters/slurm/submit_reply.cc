// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/submit_reply.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kLongestWords = 400;

struct FailureRow {
  std::string_view text;  // of Slurm; the first row that is found counts
  ErrorCode code;
  std::string_view message;  // $account, $partition, $qos, $constraint: what was asked for
  std::string_view hint;     // $accounts, $partitions: those of ToolContext
  bool maybe_done = false;
  bool without_qos = false;  // only where none was named
};

constexpr FailureRow kFailures[] = {
    // Causes that stand above the line that sums up.
    {"Munge encode failed", ErrorCode::kUnavailable, "munge does not run on this machine",
     "ask its administrators to start munged"},
    {"Munge decode failed", ErrorCode::kUnavailable, "munge here and on the controller do not fit together",
     "ask the administrators to compare munge keys and clocks"},
    {"can't be reached now, or it is an invalid entry for --cluster", ErrorCode::kUnavailable,
     "Slurm's database does not know this cluster, or it cannot be reached", "sacctmgr list clusters"},
    {"Could not establish a configuration source", ErrorCode::kNotFound,
     "no Slurm is configured on this machine", "run this on a login node, or set SLURM_CONF"},
    {"Unable to process configuration file", ErrorCode::kNotFound, "Slurm's configuration cannot be read",
     "check SLURM_CONF"},
    {"Memory specification can not be satisfied", ErrorCode::kUsage,
     "no node has as much memory as asked for", "ask for less with --mem; overcap nodes shows what there is"},
    // The controller away.
    {"Unable to contact slurm controller (receive failure)", ErrorCode::kUnavailable,
     "the connection to the controller broke", "try again; the controller may be restarting", true},
    {"Unable to contact slurm controller (shutdown failure)", ErrorCode::kUnavailable,
     "the connection to the controller broke", "try again; the controller may be restarting", true},
    {"Unable to contact slurm controller", ErrorCode::kUnavailable, "the controller does not answer",
     "try again later; scontrol ping shows when it is back"},
    {"Socket timed out on send/recv operation", ErrorCode::kUnavailable,
     "the controller did not answer in time", "try again later", true},
    {"Zero Bytes were transmitted or received", ErrorCode::kUnavailable,
     "the connection to the controller broke", "try again later", true},
    {"Transport endpoint is not connected", ErrorCode::kUnavailable, "the connection to the controller broke",
     "try again later", true},
    {"Slurm backup controller in standby mode", ErrorCode::kUnavailable, "the controller is being taken over",
     "try again later"},
    {"Slurm temporarily unable to accept job", ErrorCode::kUnavailable, "the queue is full",
     "try again later"},
    {"Resource temporarily unavailable", ErrorCode::kUnavailable,
     "the controller or its database is overloaded", "try again later", true},
    {"Problem talking to the database", ErrorCode::kUnavailable, "the accounting database does not answer",
     "try again later"},
    {"Slurm accounting storage is disabled", ErrorCode::kUnavailable, "the cluster keeps no accounting", ""},
    {"Protocol authentication error", ErrorCode::kUnavailable, "Slurm could not make sure who you are",
     "ask the administrators whether munge runs here and on the controller"},
    {"Incompatible versions of client and server code", ErrorCode::kUnavailable,
     "the programs here and the controller are of different versions of Slurm",
     "use the cluster's own login node"},
    // What may not be used.
    {"Invalid account or account/partition combination", ErrorCode::kDenied,
     "account '$account' is not known, or not yours to use in partition '$partition'",
     "sacctmgr show assoc user=$USER format=account,partition,qos shows what you may use"},
    {"Invalid partition name specified", ErrorCode::kUsage, "there is no partition '$partition'",
     "sinfo -s lists the partitions"},
    {"No partition specified or system default partition", ErrorCode::kUsage,
     "it has no default partition, and none was named", "name one with -p; $partitions"},
    {"Invalid qos specification", ErrorCode::kDenied,
     "partition '$partition' does not take the default QOS of account '$account'",
     "name an account that it takes with --account; $accounts", false, true},
    {"Invalid qos specification", ErrorCode::kDenied,
     "qos '$qos' does not exist, or account '$account' may not use it",
     "sacctmgr show assoc user=$USER format=account,qos shows what you may use"},
    {"User's group not permitted to use this partition", ErrorCode::kDenied,
     "you may not use partition '$partition'", "sinfo -s lists the partitions"},
    {"Access/permission denied", ErrorCode::kDenied, "not allowed", ""},
    {"Access denied to requested reservation", ErrorCode::kDenied, "the reservation is not yours", ""},
    {"Requested reservation is invalid", ErrorCode::kUsage, "there is no such reservation",
     "scontrol show reservation lists them"},
    {"Job violates accounting/QOS policy", ErrorCode::kDenied,
     "a limit of account '$account' or of the qos allows no such job now",
     "wait until jobs have ended, ask for less, or use another account or partition"},
    // What cannot be had.
    {"Requested time limit is invalid", ErrorCode::kUsage,
     "the time limit is missing or above what partition '$partition' allows",
     "give a shorter --time; sinfo -s shows the limits"},
    {"Requested node configuration is not available", ErrorCode::kUsage,
     "no nodes of partition '$partition' have together what is asked for",
     "ask for fewer GPUs, CPUs or memory per node, or another GPU type; overcap nodes shows what there is"},
    {"Node count specification invalid", ErrorCode::kUsage, "the cluster has not as many nodes",
     "ask for fewer --nodes"},
    {"More processors requested than permitted", ErrorCode::kUsage, "no node has as many CPUs",
     "ask for fewer --cpus; overcap nodes shows what there is"},
    {"Invalid feature specification", ErrorCode::kUsage, "no node has the feature '$constraint'",
     "sinfo -o '%N %f' lists the features"},
    {"Invalid node name specified", ErrorCode::kUsage, "there is no such node", "sinfo -N lists the nodes"},
    {"Requested nodes not in this partition", ErrorCode::kUsage,
     "a node that is asked for is not in partition '$partition'", "sinfo -N lists the nodes"},
    {"Required partition not available", ErrorCode::kUnavailable, "partition '$partition' is down or drained",
     "use another partition, or wait"},
    {"Requested partition configuration not available now", ErrorCode::kUsage,
     "partition '$partition' does not allow as much as is asked for", "sinfo -s shows the limits"},
    {"Required node not available", ErrorCode::kUnavailable,
     "a node that is asked for is down, drained or reserved", "use another node, or wait"},
    {"Invalid generic resource (gres) specification", ErrorCode::kUsage,
     "the cluster has no GPUs of that kind", "overcap nodes shows what there is"},
    {"Invalid Trackable RESource (TRES) specification", ErrorCode::kUsage,
     "Slurm does not know that resource", ""},
    {"Invalid license specification", ErrorCode::kUsage, "there is no such licence",
     "scontrol show licenses"},
    {"Invalid job array specification", ErrorCode::kUsage, "the array has too high an index, or is malformed",
     "scontrol show config shows MaxArraySize"},
    {"Job dependency problem", ErrorCode::kUsage, "a job that it shall wait for is not known", ""},
    {"Invalid job id specified", ErrorCode::kNotFound, "Slurm does not know the job (any more)", ""},
    {"Job/step already completing or completed", ErrorCode::kConflict, "the job has ended", ""},
    {"Pathname of a file, directory or other parameter too long", ErrorCode::kUsage,
     "a path or an argument is too long for Slurm", ""},
    {"I/O error writing script/environment to file", ErrorCode::kUnavailable,
     "the controller cannot write the job down: its disk may be full", "tell the administrators"},
    {"Unable to open file", ErrorCode::kInternal, "sbatch cannot read the script", ""},
    {"unrecognized option", ErrorCode::kUsage, "this version of Slurm does not know an option", ""},
    {"invalid option", ErrorCode::kUsage, "this version of Slurm does not know an option", ""},
    {"ambiguous", ErrorCode::kUsage, "an option is ambiguous", "write it out"},
    {" specification", ErrorCode::kUsage, "an option has a value that Slurm does not understand", ""},
};

std::string_view WithoutProgram(std::string_view line) {
  for (std::string_view start : {"error: ", "fatal: ", "Batch job submission failed: ",
                                 "Unable to allocate resources: ", "slurm_load_jobs error: "}) {
    const size_t at = line.find(start);
    if (at < 40) line.remove_prefix(at + start.size());
  }
  return line;
}

// Every line of the program's, without its name, on one line.
std::string OwnWords(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& line : Split(text, '\n')) {
    const std::string words(Trim(WithoutProgram(Trim(line))));
    if (!words.empty() && std::find(lines.begin(), lines.end(), words) == lines.end()) lines.push_back(words);
  }
  std::string joined = ToUtf8(Join(lines, "; "));
  std::replace_if(
      joined.begin(), joined.end(), [](unsigned char c) { return c < ' '; }, ' ');
  if (joined.size() <= kLongestWords) return joined;
  size_t end = kLongestWords;
  while (end > 0 && (static_cast<unsigned char>(joined[end]) & 0xC0) == 0x80) --end;
  return joined.substr(0, end) + "...";
}

void ReplaceAll(std::string_view what, std::string_view with, std::string* text) {
  for (size_t at = text->find(what); at != std::string::npos; at = text->find(what, at + with.size())) {
    text->replace(at, what.size(), with);
  }
}

std::string Fill(std::string_view pattern, const ToolContext& context) {
  std::string text(pattern);
  const std::pair<std::string_view, const std::string&> names[] = {{"'$account'", context.account},
                                                                   {"'$partition'", context.partition},
                                                                   {"'$qos'", context.qos},
                                                                   {"'$constraint'", context.constraint}};
  if (context.constraint.empty()) ReplaceAll("'$constraint'", "that is asked for", &text);
  for (const auto& [name, value] : names)
    ReplaceAll(name, value.empty() ? "(default)" : Quoted(value), &text);
  return text;
}

std::string Hint(std::string_view pattern, const ToolContext& context) {
  std::string hint(pattern);
  const auto fill = [&](std::string_view name, const std::function<std::string()>& names,
                        std::string_view otherwise) {
    if (hint.find(name) != std::string::npos)
      ReplaceAll(name, names ? names() : std::string(otherwise), &hint);
  };
  fill("$accounts", context.accounts, "sacctmgr show assoc user=$USER format=account,qos shows yours");
  fill("$partitions", context.partitions, "sinfo -s lists them");
  return hint;
}

}  // namespace

Result<SubmitReply> ParseSubmitReply(std::string_view text) {
  std::vector<std::string> lines = Split(text, '\n');
  std::reverse(lines.begin(), lines.end());
  for (const std::string& whole : lines) {
    const std::string_view line = Trim(whole);
    const size_t semicolon = line.find(';');
    const auto id = ParseInt(line.substr(0, semicolon));
    if (!id || *id <= 0) continue;
    SubmitReply reply{*id, {}};
    if (semicolon != std::string_view::npos) reply.cluster = ToUtf8(line.substr(semicolon + 1));
    return reply;
  }
  return Fail(ErrorCode::kInternal, StrCat("sbatch gave no job id but ", Quoted(Trim(text))));
}

ToolFailure ReadToolFailure(std::string_view program, std::string_view stderr_text, int exit_status,
                            const ToolContext& context) {
  const std::string words = OwnWords(stderr_text);
  const std::string own = words.empty() ? StrCat("exit status ", exit_status) : words;
  const std::string where = StrCat("cluster ", Quoted(context.cluster), ": ");
  for (const FailureRow& row : kFailures) {
    if (stderr_text.find(row.text) == std::string_view::npos) continue;
    if (row.without_qos && !context.qos.empty()) continue;
    return {{row.code, StrCat(where, Fill(row.message, context), " (", program, ": ", own, ")"),
             Hint(row.hint, context)},
            row.maybe_done};
  }
  // "Unspecified error" is also what a site's own submit filter leads to, whose words stand above it.
  const bool refused = stderr_text.find("Batch job submission failed") != std::string_view::npos ||
                       stderr_text.find("Unable to allocate resources") != std::string_view::npos;
  return {{refused ? ErrorCode::kDenied : ErrorCode::kInternal, StrCat(where, program, " failed: ", own), ""},
          !refused};
}

}  // namespace overcap
