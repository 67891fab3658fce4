#pragma once
// The plays of all worlds; worlds.cpp lists them with what each is about.

#include "tests/judge/world.hpp"

namespace reprise::tests::judge {

void play_crowd(world& w);
void play_starved_followers(world& w);
void play_ends(world& w);
void play_steady_readers(world& w);

void play_parts(world& w);
void play_recency(world& w);
void play_late_answers_on_disk(world& w);
void play_restarts(world& w);
void play_clock(world& w);
void play_surplus(world& w);

void play_uploads(world& w);
void play_recovery(world& w);
void play_validations(world& w);
void play_conditions(world& w);
void play_accelerator(world& w);
void play_strangers(world& w);
void play_stalled_answers(world& w);
void play_mixture(world& w);
void play_disk(world& w);

}  // namespace reprise::tests::judge
