// What is precompiled once for all tests of proxy/ belongs to a target with a source.
