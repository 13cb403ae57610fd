// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/mirror.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "clusters/slurm/marked_rows.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;

// A controller, and any number of mirrors of it that share a folder.
struct World {
  FakeClock clock;
  SeededRandom random{7};
  TempFolder folder;
  int calls = 0;
  int64_t call_takes_us = 0;
  std::optional<Error> down;
  ToolAnswer answer{{0, 0}, "", ""};
  std::vector<std::string> asked;
  std::function<void()> while_running, while_waiting;
  MirrorOptions options{"sky /etc/slurm.conf", "", {}, {folder / "own"}};

  MirrorSeams Seams() {
    const auto run = [this](const std::vector<std::string>& argv, std::chrono::milliseconds) {
      ++calls, asked = argv;
      clock.Advance(call_takes_us);
      if (while_running) while_running();
      if (down) return Result<ToolAnswer>(Fail(*down));
      ToolAnswer given = answer;
      given.out = StrCat("queue ", calls, "\n");
      return Result<ToolAnswer>(given);
    };
    const auto pause = [this](int64_t us) {
      clock.Advance(us);
      if (while_waiting) while_waiting();
    };
    return {&clock, &random, run, pause};
  }
  std::map<MirrorKind, MirrorSource> Sources() {
    const auto words = [](std::string_view mark, int64_t now_us) {
      return std::vector<std::string>{"squeue", StrCat("--mark=", mark), StrCat("--since=", now_us)};
    };
    const auto other = [](std::string_view, int64_t) { return std::vector<std::string>{"sinfo"}; };
    return {{MirrorKind::kQueue, {words, {}}}, {MirrorKind::kNodes, {other, {}}}};
  }
  Mirror Make() { return Mirror(Seams(), options, Sources()); }
  // By a process that has just begun.
  Result<MirrorText> Read(int64_t max_age_us = 0) { return Make().Read(MirrorKind::kQueue, max_age_us); }
  // "TEXT" or "TEXT (AGE s: ERROR)" or "ERROR".
  std::string Told(int64_t max_age_us = 0) { return Told(Read(max_age_us)); }
  static std::string Told(const Result<MirrorText>& read) {
    if (!read) return read.error().message;
    const std::string text(Trim(*read->text));
    if (!read->error) return text;
    const std::string age = read->age_us ? std::to_string(*read->age_us / kSecond) : "?";
    return StrCat(text, " (", age, " s: ", read->error->message, ")");
  }
  void BreakDown() { down = Error{ErrorCode::kUnavailable, "no answer", ""}; }
  std::string File(std::string_view suffix) {
    for (const auto& entry : std::filesystem::directory_iterator(folder / "own")) {
      const std::string path = entry.path();
      if (path.ends_with(suffix) && path.find("/queue-") != std::string::npos) return path;
    }
    return "";
  }
};

TEST(Mirror, AsksOnceForAllWhoLookWithinTheInterval) {
  World world;
  for (int reader = 0; reader < 50; ++reader) {
    EXPECT_EQ(world.Told(), "queue 1");
    world.clock.Advance(kSecond / 11);
  }
  EXPECT_EQ(world.calls, 1);
  world.clock.Advance(kSecond);
  EXPECT_EQ(world.Told(), "queue 2");
}

TEST(Mirror, OneWhoWatchesForAMinuteAsksTwelveTimes) {
  World world;
  Mirror mirror = world.Make();
  for (int tenth = 0; tenth < 600; ++tenth) {
    ASSERT_TRUE(mirror.Read(MirrorKind::kQueue, 0));
    world.clock.Advance(kSecond / 10);
  }
  EXPECT_EQ(world.calls, 12);
}

TEST(Mirror, AnOlderAnswerDoesForWhoSaysSo) {
  World world;
  EXPECT_EQ(world.Told(), "queue 1");
  world.clock.Advance(30 * kSecond);
  EXPECT_EQ(world.Told(60 * kSecond), "queue 1");
  EXPECT_EQ(world.Told(30 * kSecond), "queue 2");
}

TEST(Mirror, TellsWhenItWasAskedForAndWithWhichMark) {
  World world;
  world.call_takes_us = 2 * kSecond;
  const int64_t began = world.clock.WallUs();
  const auto read = world.Read();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->taken_us, began);
  EXPECT_EQ(read->age_us, 2 * kSecond);
  EXPECT_TRUE(IsRowMark(read->mark));
  EXPECT_EQ(world.asked[1], "--mark=" + read->mark);
  EXPECT_EQ(world.asked[2], StrCat("--since=", began));
  EXPECT_EQ(world.Read()->mark, read->mark);
}

TEST(Mirror, EveryCallHasAMarkOfItsOwn) {
  World world;
  const std::string first = world.Read()->mark;
  world.clock.Advance(6 * kSecond);
  EXPECT_NE(world.Read()->mark, first);
}

TEST(Mirror, ATextThatDidNotChangeIsNotReadAgain) {
  World world;
  Mirror mirror = world.Make();
  const auto text = mirror.Read(MirrorKind::kQueue, 0)->text;
  EXPECT_EQ(mirror.Read(MirrorKind::kQueue, 0)->text.get(), text.get());
}

TEST(Mirror, KindsAndClustersAndColumnsDoNotMeet) {
  World world;
  EXPECT_EQ(world.Told(), "queue 1");
  EXPECT_EQ(World::Told(world.Make().Read(MirrorKind::kNodes, 0)), "queue 2");
  world.options.cluster = "sea";
  EXPECT_EQ(world.Told(), "queue 3");
  auto sources = world.Sources();
  sources[MirrorKind::kQueue].argv = [](std::string_view, int64_t) {
    return std::vector<std::string>{"squeue", "--other-columns"};
  };
  Mirror newer(world.Seams(), world.options, sources);
  EXPECT_EQ(World::Told(newer.Read(MirrorKind::kQueue, 0)), "queue 4");
  EXPECT_EQ(newer.Read(MirrorKind::kConfig, 0).error().code, ErrorCode::kInternal);
}

TEST(Mirror, WithoutAnAnswerTheLastKnownOneIsGivenWithItsAgeAndTheError) {
  World world;
  EXPECT_EQ(world.Told(), "queue 1");
  world.BreakDown();
  world.clock.Advance(90 * kSecond);
  EXPECT_EQ(world.Told(), "queue 1 (90 s: no answer)");
}

TEST(Mirror, AFailureIsSharedForTheIntervalAndThenTriedAgain) {
  World world;
  EXPECT_EQ(world.Told(), "queue 1");
  world.BreakDown();
  world.clock.Advance(10 * kSecond);
  for (int reader = 0; reader < 50; ++reader) EXPECT_EQ(world.Told(), "queue 1 (10 s: no answer)");
  EXPECT_EQ(world.calls, 2);
  world.down.reset();
  EXPECT_EQ(world.Told(), "queue 1 (10 s: no answer)");
  world.clock.Advance(5 * kSecond);
  EXPECT_EQ(world.Told(), "queue 3");
}

TEST(Mirror, WithNothingKnownAFailureIsAnErrorNeverAnEmptyList) {
  World world;
  world.BreakDown();
  const auto read = world.Read();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(world.Told(), "no answer");
  EXPECT_EQ(world.calls, 1);
}

TEST(Mirror, AProgramThatFailsIsToldInItsOwnWords) {
  World world;
  world.answer = {{1, 0}, "", "squeue: error: no munge\nmore\n"};
  EXPECT_EQ(world.Told(), "'squeue' failed with exit status 1: squeue: error: no munge");
  world.clock.Advance(5 * kSecond);
  auto seams = world.Seams();
  seams.explain = [](const auto&, const ToolAnswer& answer) {
    return Error{ErrorCode::kDenied, StrCat("status ", answer.end.exit_status), "ask somebody"};
  };
  Mirror mirror(seams, world.options, world.Sources());
  EXPECT_EQ(mirror.Read(MirrorKind::kQueue, 0).error().hint, "ask somebody");
}

TEST(Mirror, AnAnswerThatCannotBeReadDoesNotReplaceAGoodOne) {
  World world;
  auto sources = world.Sources();
  sources[MirrorKind::kQueue].check = [&](std::string_view text, std::string_view) {
    return text == "queue 1\n" ? Result<void>() : Fail(ErrorCode::kCorrupt, "cut off");
  };
  Mirror mirror(world.Seams(), world.options, sources);
  EXPECT_EQ(World::Told(mirror.Read(MirrorKind::kQueue, 0)), "queue 1");
  world.clock.Advance(7 * kSecond);
  EXPECT_EQ(World::Told(mirror.Read(MirrorKind::kQueue, 0)), "queue 1 (7 s: cut off)");
}

TEST(Mirror, AnEmptyAnswerIsAnAnswer) {
  World world;
  auto seams = world.Seams();
  seams.run = [](const auto&, auto) { return Result<ToolAnswer>(ToolAnswer{{0, 0}, "", ""}); };
  Mirror mirror(seams, world.options, world.Sources());
  ASSERT_TRUE(mirror.Read(MirrorKind::kQueue, 0));
  EXPECT_EQ(world.Told(), "");
  EXPECT_EQ(world.calls, 0);
}

TEST(Mirror, TornEmptyAndForeignFilesAreRebuilt) {
  World world;
  EXPECT_EQ(world.Told(), "queue 1");
  const std::string file = world.File(".text");
  const auto size = std::filesystem::file_size(file);
  int calls = 1;
  for (const auto cut : {size - 1, size - 9, size / 2, std::uintmax_t{1}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(file, cut);
    EXPECT_EQ(world.Told(), StrCat("queue ", ++calls)) << cut;
    EXPECT_EQ(world.Told(), StrCat("queue ", calls)) << "kept again";
  }
  std::ofstream(file) << "{\"overcap_mirror\":1}\n";
  EXPECT_EQ(world.Told(), StrCat("queue ", ++calls));
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/etc/passwd", file);
  EXPECT_EQ(world.Told(), StrCat("queue ", ++calls));
  EXPECT_EQ(world.Told(), StrCat("queue ", calls));
}

TEST(Mirror, AFileFromTheFutureIsOldButStillTheLastKnown) {
  World world;
  EXPECT_EQ(world.Told(), "queue 1");
  world.clock.SetWall(world.clock.WallUs() - 3600 * kSecond);
  world.BreakDown();
  EXPECT_EQ(world.Told(), "queue 1 (? s: no answer)");
  EXPECT_EQ(world.Told(), "queue 1 (? s: no answer)");
  EXPECT_EQ(world.calls, 2);
  world.down.reset();
  world.clock.Advance(5 * kSecond);
  EXPECT_EQ(world.Told(), "queue 3");
  EXPECT_EQ(world.Told(), "queue 3");
}

TEST(Mirror, AJumpingClockDoesNotMakeOneProcessAskMore) {
  World world;
  Mirror mirror = world.Make();
  for (int jump = 0; jump < 50; ++jump) {
    ASSERT_TRUE(mirror.Read(MirrorKind::kQueue, 0));
    world.clock.Advance(kSecond / 10);
    world.clock.SetWall(world.clock.WallUs() + (jump % 2 == 0 ? 3600 : -3600) * kSecond);
  }
  EXPECT_EQ(world.calls, 1);
}

TEST(Mirror, WithoutAFolderItWorksFromMemoryAndSaysWhatIsWrong) {
  World world;
  std::ofstream(world.folder / "file") << "";
  world.options.own_folders = {world.folder / "file", world.folder / "file/below"};
  Mirror mirror = world.Make();
  for (int reader = 0; reader < 5; ++reader)
    EXPECT_EQ(World::Told(mirror.Read(MirrorKind::kQueue, 0)), "queue 1");
  EXPECT_EQ(mirror.troubles().size(), 2u);
  world.clock.Advance(5 * kSecond);
  EXPECT_EQ(World::Told(mirror.Read(MirrorKind::kQueue, 0)), "queue 2");
}

TEST(Mirror, TheNextFolderIsTakenWhenTheFirstCannotBe) {
  World world;
  world.options.own_folders = {"/proc/none/mirror", world.folder / "own"};
  EXPECT_EQ(world.Told(), "queue 1");
  EXPECT_EQ(world.Told(), "queue 1");
}

TEST(Mirror, AFolderThatIsRemovedWhileSomebodyWatchesIsMadeAgain) {
  World world;
  Mirror mirror = world.Make();
  ASSERT_TRUE(mirror.Read(MirrorKind::kQueue, 0));
  std::filesystem::remove_all(world.folder / "own");
  world.clock.Advance(5 * kSecond);
  EXPECT_EQ(World::Told(mirror.Read(MirrorKind::kQueue, 0)), "queue 2");
  EXPECT_EQ(world.Told(), "queue 2");
}

TEST(Mirror, AsksThroughTheSharedFolderWhereItMayWrite) {
  World world;
  world.options.shared_folder = world.folder / "shared";
  ASSERT_EQ(mkdir(world.options.shared_folder.c_str(), 0700), 0);
  EXPECT_EQ(world.Told(), "queue 1");
  EXPECT_EQ(world.File(".text"), "");
  world.options.own_folders = {world.folder / "other"};
  EXPECT_EQ(world.Told(), "queue 1");
}

TEST(Mirror, ThatAUserCannotStartTheProgramIsNotToldToOthers) {
  World world;
  world.options.shared_folder = world.folder / "shared";
  ASSERT_EQ(mkdir(world.options.shared_folder.c_str(), 0700), 0);
  world.down = Error{ErrorCode::kNotFound, "command 'squeue' does not exist", ""};
  EXPECT_EQ(world.Told(), "command 'squeue' does not exist");
  EXPECT_EQ(world.Told(), "command 'squeue' does not exist");
  EXPECT_EQ(world.calls, 1);
  world.down.reset();
  world.options.own_folders = {world.folder / "own-of-another"};
  EXPECT_EQ(world.Told(), "queue 2");
}

TEST(Mirror, OneThatWaitsTakesTheAnswerOfTheOneThatAsks) {
  World world;
  std::vector<std::string> told;
  world.while_running = [&] {
    if (world.calls > 1) return;
    // The first is within its call: a second one comes, and while it waits the answer gets there.
    world.while_waiting = [&] {
      world.while_waiting = nullptr;
      World elsewhere;
      elsewhere.clock.SetWall(world.clock.WallUs());
      ASSERT_EQ(elsewhere.Told(), "queue 1");
      std::filesystem::copy(elsewhere.File(".text"), world.folder / "own");
    };
    told.push_back(world.Told());
  };
  EXPECT_EQ(world.Told(), "queue 1");
  EXPECT_EQ(told, std::vector<std::string>{"queue 1"});
  EXPECT_EQ(world.calls, 1);
}

TEST(Mirror, OneThatHangsWithTheLockLosesItAndDoesNotUndoALaterAnswer) {
  World world;
  world.options.call_timeout_us = 3 * kSecond;
  std::string later;
  world.while_running = [&] {
    if (world.calls > 1) return;
    later = world.Read()->mark;  // by another process, while the first is stopped within its call
  };
  const auto first = world.Read();
  ASSERT_TRUE(first);
  EXPECT_EQ(world.calls, 2);
  EXPECT_NE(first->mark, later);
  EXPECT_EQ(world.Read()->mark, later);
  EXPECT_EQ(world.calls, 2);
}

TEST(Mirror, WhileAnotherHangsTheLastKnownIsStillGivenInTheEnd) {
  World world;
  EXPECT_EQ(world.Told(), "queue 1");
  world.clock.Advance(6 * kSecond);
  const MirrorFolder own = std::move(*MirrorFolder::OpenOwn(world.folder / "own"));
  const std::string name = std::filesystem::path(world.File(".lock")).filename();
  std::vector<MirrorLock> taken;  // by ever new ones that hang
  world.while_waiting = [&] {
    if (auto lock = own.TryLock(name); lock && *lock) taken.push_back(std::move(**lock));
  };
  taken.push_back(std::move(**own.TryLock(name)));
  EXPECT_EQ(world.Told(), "queue 1 (40 s: another process reads 'queue' of the cluster and hangs)");
  EXPECT_EQ(world.calls, 1);
}

TEST(Mirror, OwnFoldersBelongToOneUser) {
  EXPECT_EQ(
      OwnMirrorFolders(1000, "/home/a/.local/state/overcap"),
      (std::vector<std::string>{"/dev/shm/overcap-1000-mirror", "/home/a/.local/state/overcap/mirror"}));
}

}  // namespace
}  // namespace overcap
