// Goldens of single behaviours (test/goldens/fx-extra), compared like the samples.
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import type { GraphModule } from 'tensorfx/fx'
import { checkGraph } from './samples/harness.ts'
import type { GoldenNode } from './samples/golden.ts'
import { parseGraph } from './samples/parseGraph.ts'

/** A graph as a golden holds it: its nodes, or its text only. */
export interface GoldenGraph {
  readonly str_graph: string
  readonly nodes?: readonly GoldenNode[]
}

export const readExtra = <T>(name: string): T => JSON.parse(readFileSync(new URL(`../goldens/fx-extra/${name}.json`, import.meta.url), 'utf8')) as T

/** The graph agrees with PyTorch's, up to the differences that have a row. */
export function expectGraph(gm: GraphModule, golden: GoldenGraph, strings: readonly string[] = []): void {
  gm.graph.lint()
  checkGraph(gm, golden.nodes ?? parseGraph(golden.str_graph, strings))
}

/** Every child of the golden, by name. */
export function expectChildren(gm: GraphModule, golden: Readonly<Record<string, GoldenGraph>>): void {
  const children = new Map([...gm.namedChildren()])
  expect(Object.keys(golden).filter((name) => !children.has(name))).toEqual([])
  for (const [name, graph] of Object.entries(golden)) expectGraph(children.get(name) as GraphModule, graph)
}
