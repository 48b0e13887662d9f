#include "command_help.hpp"

#include <string_view>
#include <utility>

namespace kith::cli {
namespace {

constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
    {"", "kith knn --base base.fbin --queries queries.fbin -k 10 --out-ids ids.ibin"},
    {"info", "kith info base.fbin queries.fbin"},
    {"head", "kith head base.fbin --rows 0:3"},
    {"knn",
     "kith knn --base base.fbin --queries queries.fbin -k 10 --metric cosine --out-ids ids.ibin --out-distances "
     "distances.fbin"},
    {"range",
     "kith range --base base.fbin --queries queries.fbin --radius 0.5 --out-offsets offsets.ibin --out-ids ids.ibin"},
    {"kmeans", "kith kmeans --data base.fbin -k 100 --out centres.fbin --out-labels labels.ibin"},
    {"convert", "kith convert base.fvecs base.f16bin --dtype f16"},
    {"eval", "kith eval --found ids.ibin --truth truth.ibin -k 10"},
    {"index", "kith index build --base base.fbin --factory IVF1024,PQ16 --out base.kith"},
    {"index build", "kith index build --base base.fbin --factory IVF1024,PQ16 --out base.kith"},
    {"index add", "kith index add --index base.kith --base more.fbin --out larger.kith"},
    {"index remove", "kith index remove --index base.kith --ids old.ibin"},
    {"index range",
     "kith index range --index base.kith --queries queries.fbin --radius 0.5 --out-offsets offsets.ibin --out-ids ids.ibin"},
    {"index search", "kith index search --index base.kith --queries queries.fbin -k 10 --probes 32 --out-ids ids.ibin"},
    {"index tune", "kith index tune --index base.kith --queries queries.fbin -k 10 --recall 0.95"},
    {"index inspect", "kith index inspect base.kith"},
    {"index convert", "kith index convert base.kith base.faiss"},
    {"index merge", "kith index merge base.kith more.kith --out both.kith --shift-ids"},
    {"graph", "kith graph build --data base.fbin -k 15 --out graph"},
    {"graph build", "kith graph build --data base.fbin -k 15 --out graph"},
    {"graph eval", "kith graph eval --graph graph --data base.fbin"},
    {"graph merge",
     "kith graph merge --ids a_ids.npy b_ids.npy --distances a_d.npy b_d.npy --data a.fbin b.fbin --out-ids ids.npy "
     "--out-distances distances.npy"},
    {"graph extend",
     "kith graph extend --ids ids.npy --distances distances.npy --data base.fbin --new more.fbin --out-ids "
     "more_ids.npy "
     "--out-distances more_distances.npy"},
    {"graph refine",
     "kith graph refine --ids ids.npy --distances distances.npy --data base.fbin --out-ids better_ids.npy "
     "--out-distances better_distances.npy"},
    {"graph info", "kith graph info --graph graph"},
    {"graph path", "kith graph path --graph graph --from 17 --to 4242"},
    {"graph labels", "kith graph labels --graph graph --height 0.5 --out labels.ibin"},
    {"dedup", "kith dedup --data base.fbin --radius 0.5 --out unique.fbin --out-rows rows.ibin"},
    {"sample", "kith sample base.fbin && kith sample queries.fbin --rows 1000 --seed 1"},
    {"collection", "kith collection create films --dimension 384 --column year:int --column title:text"},
    {"collection create", "kith collection create films --dimension 384 --column year:int --column title:text"},
    {"collection add", "kith collection add films --vectors films.fbin --items films.jsonl"},
    {"collection remove", "kith collection remove films --where 'year < ?' --params 1930"},
    {"collection search", "kith collection search films --queries queries.fbin -k 5 --where 'year > ?' --params 1960"},
    {"collection info", "kith collection info films"},
    {"collection verify", "kith collection verify films"},
    {"collection compact", "kith collection compact films --factory IVF,SQ8"},
    {"collection snapshot", "kith collection snapshot films films.copy"},
    {"collection export", "kith collection export films --out-vectors out.fbin --out-items out.jsonl"},
    {"train", "kith train --data base.fbin --quantizer PQ16 --out pq.kith"},
    {"encode", "kith encode --quantizer pq.kith --data base.fbin --out codes.u8bin"},
    {"decode", "kith decode --quantizer pq.kith --codes codes.u8bin --out decoded.fbin"},
    {"explore", "kith explore --vectors base.fbin --items thumbs/"},
    {"plan", "kith plan --rows 2e7 --cols 96 --dtype u8 -k 10 --memory-limit 1G"},
    {"completion", "kith completion bash > ~/.local/share/bash-completion/completions/kith"},
    {"manual", "kith manual | man -l -"},
};

}  // namespace

std::string example_of(const std::string& path) {
  for (const auto& [command, line] : kExamples) {
    if (command == path) return std::string(line);
  }
  return "";
}

}  // namespace kith::cli
