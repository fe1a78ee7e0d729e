package main

//go:generate go run ./generate

func blsSignatures(t *table)  {}
func evmPrecompiles(t *table) {}
func kzgOperations(t *table)  {}
