// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_client.h"

#include <atomic>
#include <gtest/gtest.h>
#include <optional>
#include <thread>

#include "base/text.h"
#include "net/tcp.h"
#include "net/testing/http_test_server.h"
#include "sys/free_port.h"

namespace overcap {
namespace {

void Echo(const HttpTestRequest& request, HttpTestPeer& peer) {
  peer.Answer(200, StrCat(request.method, " ", request.target, " ", request.body));
}

HttpRequest Get(std::string target) {
  HttpRequest request;
  request.target = std::move(target);
  return request;
}

HttpRequest Post(std::string target, std::span<const std::string_view> body) {
  HttpRequest request = Get(std::move(target));
  request.method = "POST";
  request.body = body;
  return request;
}

// The body, or "error: CODE".
std::string BodyOf(HttpClient& client, const HttpRequest& request, size_t most = HttpClient::kText) {
  std::string body;
  const auto answer = client.Call(request, &body, most);
  return answer ? body : StrCat("error: ", ErrorCodeName(answer.error().code));
}

TEST(HttpClient, AsksAndGetsAnswers) {
  HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) {
    peer.Answer(404, StrCat(request.Header("host"), "|", request.Header("x-a")), {{"ETag", "e"}});
  });
  HttpClient client(server.origin());
  HttpRequest request = Get("/x?y=1");
  request.headers = {{"X-A", "b"}};
  std::string body;
  const auto answer = client.Call(request, &body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->Find("etag"), "e");
  EXPECT_EQ(body, StrCat("127.0.0.1:", server.origin().port, "|b"));
}

TEST(HttpClient, SendsPiecesOneAfterTheOther) {
  HttpTestServer server(Echo);
  HttpClient client(server.origin());
  std::vector<std::string> texts;
  std::string whole;
  for (int i = 0; i < 500; ++i) whole += texts.emplace_back(i % 5 == 0 ? "" : StrCat(i, ","));
  const std::vector<std::string_view> pieces(texts.begin(), texts.end());
  EXPECT_EQ(BodyOf(client, Post("/p", pieces)), StrCat("POST /p ", whole));
}

TEST(HttpClient, AnnouncesAnEmptyBodyWhenAsked) {
  HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) {
    peer.Answer(200, StrCat("[", request.Header("content-length"), "]"));
  });
  HttpClient client(server.origin());
  HttpRequest request = Get("/");
  EXPECT_EQ(BodyOf(client, request), "[]");
  request.has_body = true;
  EXPECT_EQ(BodyOf(client, request), "[0]");
}

TEST(HttpClient, UsesOneConnectionForRequestsInARow) {
  HttpTestServer server(Echo);
  HttpClient client(server.origin());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(BodyOf(client, Get(StrCat("/", i))), StrCat("GET /", i, " "));
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(client.kept(), 1u);
}

TEST(HttpClient, ServesManyThreadsWithAsManyConnectionsAtMost) {
  HttpTestServer server(Echo);
  HttpClient client(server.origin());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string text = StrCat(t, "-", i);
        const std::string_view piece = text;
        if (BodyOf(client, Post("/", std::span(&piece, 1))) != StrCat("POST / ", text)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(server.connections(), 8);
}

TEST(HttpClient, ReadsLargeBodiesIntoTheCallersMemory) {
  const std::string large(5'000'000, 'x');
  HttpTestServer server([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    EXPECT_EQ(request.body.size(), large.size());
    peer.Answer(200, request.body);
  });
  HttpClient client(server.origin());
  const std::string_view piece = large;
  std::string body = "old";
  ASSERT_TRUE(client.Call(Post("/", std::span(&piece, 1)), &body));
  EXPECT_TRUE(body == large);
}

TEST(HttpClient, RefusesMoreThanItWasTold) {
  HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.target == "/length") return peer.Answer(200, std::string(1000, 'x'));
    peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" + std::string(1000, 'x') +
              "\r\n0\r\n\r\n");
  });
  HttpClient client(server.origin());
  EXPECT_EQ(BodyOf(client, Get("/length"), 999), "error: corrupt");
  EXPECT_EQ(BodyOf(client, Get("/length"), 1000), std::string(1000, 'x'));
  EXPECT_EQ(BodyOf(client, Get("/chunks"), 999), "error: corrupt");
  EXPECT_EQ(BodyOf(client, Get("/chunks"), 1000), std::string(1000, 'x'));
}

TEST(HttpClient, KeepsTheTextOfErrorsWhateverTheLimit) {
  HttpTestServer server(
      [](const HttpTestRequest&, HttpTestPeer& peer) { peer.Answer(403, std::string(90'000, 'e')); });
  HttpClient client(server.origin());
  EXPECT_EQ(BodyOf(client, Get("/"), 10), std::string(64 * 1024, 'e'));
  EXPECT_EQ(client.kept(), 0u);
}

TEST(HttpClient, DoesNotTrustALengthThatNobodyCouldSend) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 999999999999999\r\n\r\nfew");
    peer.Close();
  });
  HttpClient client(server.origin());
  EXPECT_EQ(BodyOf(client, Get("/"), std::numeric_limits<size_t>::max()), "error: unavailable");
}

TEST(HttpClient, TakesChunksAndBodiesThatEndWithTheConnection) {
  HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.target == "/chunks")
      return peer.Send(
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n");
    peer.Send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
    peer.Close();
  });
  HttpClient client(server.origin());
  EXPECT_EQ(BodyOf(client, Get("/chunks")), "hello!");
  EXPECT_EQ(client.kept(), 1u);
  EXPECT_EQ(BodyOf(client, Get("/close")), "until the end");
  EXPECT_EQ(client.kept(), 0u);
}

TEST(HttpClient, SkipsInterimAnswers) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\na: b\r\n\r\n");
    peer.Answer(200, "real");
  });
  HttpClient client(server.origin());
  EXPECT_EQ(BodyOf(client, Get("/")), "real");
}

TEST(HttpClient, HasNoBodyAfterHead) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
  });
  HttpClient client(server.origin());
  HttpRequest request = Get("/");
  request.method = "HEAD";
  std::string body;
  for (int i = 0; i < 2; ++i) {
    const auto answer = client.Call(request, &body);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->Find("content-length"), "500");
    EXPECT_EQ(body, "");
  }
  EXPECT_EQ(server.connections(), 1);
}

// The second request of each connection finds it closed, whether seen before or only after sending.
TEST(HttpClient, SendsAgainWhenAKeptConnectionWasClosed) {
  for (const bool after_reading : {false, true}) {
    HttpTestServer server([&](const HttpTestRequest& request, HttpTestPeer& peer) {
      if (request.nth == 1) return peer.Close();
      Echo(request, peer);
      if (!after_reading) peer.Close();
    });
    HttpClient client(server.origin());
    for (int i = 0; i < 10; ++i) EXPECT_EQ(BodyOf(client, Get("/a")), "GET /a ");
    EXPECT_EQ(server.connections(), 10);
  }
}

TEST(HttpClient, SendsNothingTwiceThatMayNotBe) {
  HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.nth == 1) return peer.Close();
    Echo(request, peer);
  });
  HttpClient client(server.origin());
  HttpRequest request = Get("/a");
  request.repeatable = false;
  EXPECT_EQ(BodyOf(client, request), "GET /a ");
  EXPECT_EQ(BodyOf(client, request), "error: unavailable");
  EXPECT_EQ(server.requests(), 2);
}

TEST(HttpClient, DoesNotSendAgainOnceAnAnswerBegan) {
  HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.nth == 0) return Echo(request, peer);
    peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal");
    peer.Close();
  });
  HttpClient client(server.origin());
  EXPECT_EQ(BodyOf(client, Get("/a")), "GET /a ");
  EXPECT_EQ(BodyOf(client, Get("/a")), "error: unavailable");
  EXPECT_EQ(server.requests(), 2);
}

TEST(HttpClient, ReadsWhyAServerDoesNotWantTheRest) {
  const std::string large(40'000'000, 'x');
  auto listener = ListenTcp();
  ASSERT_TRUE(listener);
  std::atomic<bool> done{false};
  std::thread refuser([&] {
    Result<std::optional<Fd>> peer = std::optional<Fd>();
    while (peer && !*peer && !done) peer = AcceptTcp(listener->fd);
    if (!peer || !*peer) return;
    const std::string_view answer = "HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nno!";
    (void)!write((*peer)->Get(), answer.data(), answer.size());
    while (!done) std::this_thread::yield();
  });
  HttpClient client({false, "127.0.0.1", listener->port});
  const std::string_view piece = large;
  std::string body;
  const auto answer = client.Call(Post("/", std::span(&piece, 1)), &body);
  done = true;
  refuser.join();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(body, "no!");
  EXPECT_EQ(client.kept(), 0u);
}

TEST(HttpClient, NamesWhatCannotBeReached) {
  const int port = FreePort();
  HttpClient client({false, "127.0.0.1", port});
  std::string body;
  const auto answer = client.Call(Get("/"), &body);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(answer.error().message, StrCat("cannot reach '127.0.0.1:", port, "': Connection refused"));
}

TEST(HttpClient, NamesAHostThatIsNotKnown) {
  HttpClient client({false, "no-such-host.invalid", 80});
  std::string body;
  const auto answer = client.Call(Get("/"), &body);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "the host 'no-such-host.invalid' is not known");
}

TEST(HttpClient, FindsALocalHostByName) {
  HttpTestServer server(Echo);
  HttpClient client({false, "localhost", server.origin().port});
  EXPECT_EQ(BodyOf(client, Get("/n")), "GET /n ");
}

TEST(HttpClient, SaysWhenItIsNoHttpServer) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send("SSH-2.0-OpenSSH_9.2p1\r\n");
    peer.Close();
  });
  HttpClient client(server.origin());
  std::string body;
  const auto answer = client.Call(Get("/"), &body);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("the answer is not HTTP"), std::string::npos)
      << answer.error().message;
}

TEST(HttpClient, EndsWhenNothingComes) {
  HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.target == "/half") peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal");
    peer.WaitUntilGone();
    peer.Close();
  });
  HttpClient client(server.origin());
  for (const char* target : {"/none", "/half"}) {
    HttpRequest request = Get(target);
    request.deadlines.idle_us = 50'000;
    std::string body;
    const auto answer = client.Call(request, &body);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(answer.error().message.find("neither took nor gave anything"), std::string::npos);
  }
}

TEST(HttpClient, EndsAtTheDeadlineForAllOfIt) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (peer.open()) peer.Send("1\r\nx\r\n");
  });
  HttpClient client(server.origin());
  HttpRequest request = Get("/");
  request.deadlines.total_us = 100'000;
  const HttpPieceTaker ignore = [](const HttpResponse&, std::string_view) { return Result<void>(); };
  const auto answer = client.Stream(request, ignore);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("did not answer all within"), std::string::npos);
}

TEST(HttpClient, StreamsAsItComes) {
  std::atomic<int> seen{0};
  HttpTestServer server([&](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 3; ++i) {
      peer.Send("2\r\nab\r\n");
      while (seen <= i) std::this_thread::yield();  // nothing more before this has arrived
    }
    peer.Send("0\r\n\r\n");
  });
  HttpClient client(server.origin());
  std::string all;
  const auto answer = client.Stream(Get("/"), [&](const HttpResponse& head, std::string_view piece) {
    EXPECT_EQ(head.status, 200);
    all += piece;
    ++seen;
    return Result<void>();
  });
  ASSERT_TRUE(answer);
  EXPECT_EQ(all, "ababab");
  EXPECT_EQ(client.kept(), 1u);
}

TEST(HttpClient, EndsAStreamWhenTheTakerFails) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    EXPECT_TRUE(peer.WaitUntilGone());
    peer.Close();
  });
  HttpClient client(server.origin());
  const auto answer = client.Stream(Get("/"), [](const HttpResponse&, std::string_view) -> Result<void> {
    return Fail(ErrorCode::kCorrupt, "no good");
  });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "no good");
}

TEST(HttpClient, IsCancelledFromAnotherThread) {
  std::atomic<bool> streaming{false};
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    EXPECT_TRUE(peer.WaitUntilGone());
    peer.Close();
  });
  HttpClient client(server.origin());
  HttpCancel cancel;
  std::thread canceller([&] {
    while (!streaming) std::this_thread::yield();
    cancel.Cancel();
  });
  const auto answer = client.Stream(
      Get("/watch"),
      [&](const HttpResponse&, std::string_view) {
        streaming = true;
        return Result<void>();
      },
      &cancel);
  canceller.join();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(cancel.cancelled());
  std::string body;
  EXPECT_FALSE(client.Call(Get("/"), &body, 10, &cancel));
}

TEST(HttpClient, IsCancelledWhileThereIsAlwaysMore) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (peer.open()) peer.Send("1\r\nx\r\n");
  });
  HttpClient client(server.origin());
  HttpCancel cancel;
  const auto cancels = [&](const HttpResponse&, std::string_view) {
    cancel.Cancel();
    return Result<void>();
  };
  const auto answer = client.Stream(Get("/watch"), cancels, &cancel);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kConflict) << answer.error().message;
}

TEST(HttpClient, LetsNobodySmuggleLines) {
  HttpTestServer server(Echo);
  HttpClient client(server.origin());
  HttpRequest request = Get("/a b");
  EXPECT_EQ(BodyOf(client, request), "error: usage");
  request = Get("/a\r\nX: y");
  EXPECT_EQ(BodyOf(client, request), "error: usage");
  request = Get("/a");
  request.headers = {{"X", "a\r\nY: z"}};
  EXPECT_EQ(BodyOf(client, request), "error: usage");
  EXPECT_EQ(server.requests(), 0);
}

TEST(HttpClient, SurvivesResetsOfTheConnection) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) { peer.Reset(); });
  HttpClient client(server.origin());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(BodyOf(client, Get("/")), "error: unavailable");
}

}  // namespace
}  // namespace overcap
