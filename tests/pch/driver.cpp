// The precompiled header of drivers has to belong to a target, and a target to have a source.
