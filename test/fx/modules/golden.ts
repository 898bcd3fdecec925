// The goldens of single modules of torch.fx (test/goldens/fx-modules): what PyTorch gives for each case, next to the program that gave it. The programs are ported in
// the tests of this folder; the models that many of them use are here.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { operator, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { Linear, Module } from 'tensorfx/nn'
import { detInit, detInput } from '../../helpers/deterministic.ts'
import { expectGraph } from '../golden.ts'

/** A case of a golden. `python` is its program, `result` what it returned, `stdout` what it printed. */
export interface GoldenCase {
  readonly name: string
  readonly python: string
  readonly result: unknown
  readonly stdout?: string
}

interface GoldenFile {
  readonly cases: readonly GoldenCase[]
}

/** What the case of a golden returned, as its test expects it. */
export const resultOf = <T>(golden: GoldenCase): T => golden.result as T

/**
 * A test for each case of a golden. `ports` has the ported programs by the names of the cases, which they get; a name may be followed by a remark such as
 * `(difference: id)`. A case without a port fails.
 */
export function describeGolden(module: string, ports: Readonly<Record<string, (golden: GoldenCase) => void>>): void {
  const url = new URL(`../../goldens/fx-modules/${module}.json`, import.meta.url)
  const { cases } = JSON.parse(readFileSync(url, 'utf8')) as GoldenFile
  const named = new Map(Object.entries(ports).map(([title, port]) => [title.split(' ')[0] ?? title, { title, port }]))
  describe(`goldens of ${module}`, () => {
    for (const golden of cases) {
      const entry = named.get(golden.name)
      if (entry !== undefined) it(entry.title, () => entry.port(golden))
    }
    it('every case has a test, and every test a case', () => {
      expect([...named.keys()].toSorted()).toEqual(cases.map((c) => c.name).toSorted())
    })
  })
}

/** The model that most cases use: a linear layer, relu, + y, sin, cos, neg. */
export class Chain extends Module {
  lin: Linear = new Linear(4, 4)

  override forward(x: Tensor, y: Tensor): Tensor {
    const c = operator.add(torch.relu(this.lin.call(x)), y) as Tensor
    return torch.neg(torch.sin(c).cos())
  }
}

export const chain = (): GraphModule => symbolicTrace(detInit(new Chain()))

/** Two functions of the same input, added. */
export class Branch extends Module {
  override forward(a: Tensor): Tensor {
    return operator.add(torch.sin(a), torch.cos(a)) as Tensor
  }
}

export const X: Tensor = detInput([2, 4], 1)
export const Y: Tensor = detInput([2, 4], 2)

/** The node of a name. */
export function nodeOf(gm: GraphModule, name: string): Node {
  const found = [...gm.graph.nodes].find((node) => node.name === name)
  if (found === undefined) throw new Error(`no node '${name}' in ${String(gm.graph)}`)
  return found
}

export const names = (nodes: Iterable<Node>): string[] => Array.from(nodes, (node) => node.name)

/** The message of the error that a call throws. */
export function messageOf(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('expected an error')
}

/** The graph is PyTorch's, given as text. */
export const expectText = (gm: GraphModule, text: string, strings: readonly string[] = []): void => expectGraph(gm, { str_graph: text }, strings)
