// The purpose of splits according to their names.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "stages/corpus/split_name.h"

namespace melflow::split_name_test {

TEST_CASE("split names: which are for training") {
  for (const char* name : {"train", "training", "tr", "trn", "TRAIN", "Train", "train-clean-100",
                           "train_other", "train.1", "train2", "tr05_real", "train set"}) {
    CAPTURE(std::string(name));
    CHECK(is_training_split(name));
  }
  for (const char* name :
       {"", "trainer", "trains", "trainé", "retrain", "my_train", "dev", "val", "test", "train_dev",
        "train-val", "train_test", "training.eval", "other", "trial", "100-train"}) {
    CAPTURE(std::string(name));
    CHECK_FALSE(is_training_split(name));
  }
}

TEST_CASE("split names: training first, then validation, test and all others as they were") {
  std::vector<std::string> names{"other",     "test-other", "dev-clean", "train-clean-360",
                                 "unlabeled", "train_dev",  "test",      "train-clean-100",
                                 "VAL",       "validated"};
  sort_by_purpose(names);
  CHECK(names == std::vector<std::string>{"train-clean-360", "train-clean-100", "dev-clean",
                                          "train_dev", "VAL", "test-other", "test", "other",
                                          "unlabeled", "validated"});
}

}  // namespace melflow::split_name_test
