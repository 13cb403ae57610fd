// SPDX-License-Identifier: Apache-2.0
#include "model/yaml_tree.h"

#include <exception>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kMaxDepth = 8;
constexpr const char* kPatternHint = "a word that begins with '*' or '&' must stand in quotes";

// Builds the tree from the parser's events. What it refuses it throws, as the parser itself does.
class Builder : public YAML::EventHandler {
 public:
  YamlTree Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      throw YAML::ParserException(mark, "something stands behind the end of the document");
    root_.line = mark.line + 1;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { Add(mark, YamlTree::Kind::kNull); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw YAML::ParserException(mark, "an alias of an anchor may not stand here");
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    Add(mark, YamlTree::Kind::kScalar)->text = value;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Open(mark, YamlTree::Kind::kList);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Open(mark, YamlTree::Kind::kMap);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  YamlTree* Add(const YAML::Mark& mark, YamlTree::Kind kind) {
    YamlTree* node = &root_;
    // Only the last item of each open node is ever open itself: growing its parent's list moves none of them.
    if (!open_.empty()) node = &open_.back()->items.emplace_back();
    node->kind = kind;
    node->line = mark.line + 1;
    return node;
  }
  void Open(const YAML::Mark& mark, YamlTree::Kind kind) {
    if (open_.size() == kMaxDepth) throw YAML::ParserException(mark, "nested too deep");
    open_.push_back(Add(mark, kind));
  }

  YamlTree root_;
  std::vector<YamlTree*> open_;
  int documents_ = 0;
};

}  // namespace

Result<YamlTree> ParseYaml(std::string_view text, const std::string& file) {
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder;
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.Take();
  } catch (const YAML::Exception& error) {
    const bool anchor = error.msg.find("anchor") != std::string::npos;
    return Fail(ErrorCode::kUsage, StrCat(file, ":", error.mark.line + 1, ": ", ToUtf8(error.msg)),
                anchor ? kPatternHint : "the file is no valid YAML");
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kUsage, StrCat(file, ":1: ", ToUtf8(error.what())), "the file is no valid YAML");
  }
}

}  // namespace overcap
