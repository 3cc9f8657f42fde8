// SPDX-License-Identifier: MIT
// The part of JSON Schema that p2p-verify-1.json uses.  A keyword it does not know fails the check,
// so that the schema cannot grow past its checker unseen.
#pragma once
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace p2p::schema {

using nlohmann::json;

inline bool isType(const json& v, const std::string& t) {
    if (t == "object") return v.is_object();
    if (t == "array") return v.is_array();
    if (t == "string") return v.is_string();
    if (t == "boolean") return v.is_boolean();
    if (t == "null") return v.is_null();
    if (t == "integer") return v.is_number_integer();
    if (t == "number") return v.is_number();
    return false;
}

inline void check(const json& root, const json& s, const json& v, const std::string& at,
                  std::vector<std::string>& errors) {
    static const std::set<std::string> notes = {"$schema", "$id", "title", "description", "$defs"};
    for (const auto& [key, want] : s.items()) {
        if (notes.count(key) != 0) continue;
        if (key == "$ref") {
            check(root, root.at(json::json_pointer(want.get<std::string>().substr(1))), v, at,
                  errors);
        } else if (key == "type") {
            bool ok = false;
            for (const json& t : want.is_array() ? want : json::array({want}))
                ok = ok || isType(v, t);
            if (!ok) errors.push_back(at + ": wrong type " + v.type_name());
        } else if (key == "const") {
            if (v != want) errors.push_back(at + ": not " + want.dump());
        } else if (key == "enum") {
            if (std::find(want.begin(), want.end(), v) == want.end())
                errors.push_back(at + ": not in the list: " + v.dump());
        } else if (key == "required") {
            for (const json& k : want)
                if (v.is_object() && !v.contains(k.get<std::string>()))
                    errors.push_back(at + ": missing " + k.dump());
        } else if (key == "properties") {
            if (!v.is_object()) continue;
            for (const auto& [k, sub] : want.items())
                if (v.contains(k)) check(root, sub, v.at(k), at + "/" + k, errors);
            // The schema lists all that this version writes.
            for (const auto& [k, value] : v.items())
                if (!want.contains(k)) errors.push_back(at + ": not described: " + k);
        } else if (key == "items") {
            if (!v.is_array()) continue;
            for (std::size_t i = 0; i < v.size(); i++)
                check(root, want, v[i], at + "/" + std::to_string(i), errors);
        } else if (key == "minimum") {
            if (v.is_number() && v < want) errors.push_back(at + ": below " + want.dump());
        } else if (key == "minLength") {
            if (v.is_string() && v.get<std::string>().size() < want.get<std::size_t>())
                errors.push_back(at + ": too short");
        } else if (key == "pattern") {
            if (v.is_string() &&
                !std::regex_search(v.get<std::string>(), std::regex(want.get<std::string>())))
                errors.push_back(at + ": does not match " + want.dump() + ": " + v.dump());
        } else {
            errors.push_back("keyword unknown to the checker: " + key);
        }
    }
}

inline std::vector<std::string> errorsOf(const json& schema, const json& value) {
    std::vector<std::string> errors;
    check(schema, schema, value, "", errors);
    return errors;
}

}  // namespace p2p::schema
