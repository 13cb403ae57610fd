// SPDX-License-Identifier: Apache-2.0
#include "control/stores/open_store.h"

#include "base/text.h"
#include "control/expand_folder.h"
#include "control/stores/instance_keys.h"
#include "control/stores/store_keys.h"

namespace overcap {
namespace {

const StoreEntry* EntryOf(const StoreBook& book, const StorePlace& place) {
  const auto found = book.entries.find(place.entry);
  return found == book.entries.end() ? nullptr : &found->second;
}

// Absolute, with the variables that it begins with in their places.
Result<std::string> AbsoluteFolder(const StoreBook& book, const std::string& path) {
  if (path.starts_with('~') || path.starts_with('$')) return ExpandFolder(path, book.variables);
  if (path.starts_with('/')) return path;
  if (book.folder.empty())
    return Fail(ErrorCode::kUsage,
                StrCat(Quoted(path, 200), " is relative to a folder that does not exist any more"));
  std::string_view rest = path;
  while (rest.starts_with("./")) rest.remove_prefix(2);
  return rest == "." || rest.empty() ? book.folder : StrCat(book.folder, book.folder == "/" ? "" : "/", rest);
}

Result<StorePlace> PlaceOf(const StoreBook& book, std::string_view text, std::string entry) {
  OC_TRY(location, ParseStoreLocation(text));
  if (location.kind == StoreKind::kFolder) {
    OC_TRY(path, AbsoluteFolder(book, location.path));
    location.path = std::move(path);
  }
  return StorePlace{std::move(location), std::move(entry)};
}

}  // namespace

Result<StoreAccess> FindStoreAccess(const StoreBook& book, const StorePlace& place) {
  StoreAccess access;
  const StoreEntry* entry = EntryOf(book, place);
  if (place.location.kind == StoreKind::kS3) {
    OC_TRY(s3, FindS3Access(entry, book.variables, [&] {
             return KeysOfInstance(std::string(book.variables.Get("AWS_EC2_METADATA_SERVICE_ENDPOINT")));
           }));
    access.s3 = std::move(s3);
  }
  if (place.location.kind == StoreKind::kAzure) {
    OC_TRY(azure, FindAzureAccess(place.location, entry, book.variables));
    access.azure = std::move(azure);
  }
  access.ssh_env = book.variables.entries();
  if (book.variables.Has("OVERCAP_SSH")) access.ssh_program = book.variables.Get("OVERCAP_SSH");
  return access;
}

Result<StorePlace> FindStorePlace(const StoreBook& book, const std::string& text) {
  const StoreName named = SplitStoreName(text);
  const auto found = book.entries.find(named.name);
  if (!named.name.empty() && found != book.entries.end()) {
    OC_TRY(place, PlaceOf(book, found->second.at, named.name));
    const bool open_end = text.back() == '/' || named.path.empty();  // the store itself is a folder
    for (const std::string& part : Split(named.path, '/')) {
      if (part == "..")
        return Fail(ErrorCode::kUsage, StrCat(Quoted(text, 200), " leads out of store '", named.name, "'"));
      if (!part.empty() && part != ".") place.location = place.location.Below(part);
    }
    place.location.open_end = open_end;
    return place;
  }
  if (!named.name.empty() && text.find(':') != std::string::npos && !HasStoreScheme(text)) {
    std::vector<std::string> names;
    for (const auto& [name, entry] : book.entries) names.push_back(name);
    return Fail(
        ErrorCode::kUsage, StrCat("there is no store ", Quoted(named.name), " in 'stores:' of overcap.yaml"),
        names.empty() ? StrCat("a file of this name is './", text, "'")
                      : StrCat("there is: ", Join(names, ", "), "; a file of this name is './", text, "'"));
  }
  return PlaceOf(book, text, "");
}

Result<std::unique_ptr<Store>> OpenStoreAt(const StoreBook& book, const StorePlace& place,
                                           const OpenStoreOptions& options) {
  OC_TRY(access, FindStoreAccess(book, place));
  return OpenStore(place.location, access, options);
}

Result<std::unique_ptr<Store>> OpenStoreAt(const StoreBook& book, const std::string& text, bool create) {
  OC_TRY(place, FindStorePlace(book, text));
  return OpenStoreAt(book, place, {.create = create});
}

Result<std::string> UrlOfObject(const StoreBook& book, const StorePlace& place, const std::string& key,
                                int64_t seconds) {
  OC_TRY(access, FindStoreAccess(book, place));
  return StoreUrl(place.location, access, key, seconds);
}

}  // namespace overcap
