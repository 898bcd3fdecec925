// Every pass that keeps a program's meaning, on the programs of PyTorch's test_common_passes: constants made inside, lists, writes to values and to inputs.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { makeFx, reinplace } from 'tensorfx/aot'
import { Transformer, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { splitConstSubgraphs } from 'tensorfx/fx/experimental'
import { CSEPass, legalizeGraph } from 'tensorfx/fx/passes'

const programs: Readonly<Record<string, (x: Tensor) => Tensor | readonly Tensor[]>> = {
  TorchTensorCall: (x) => x.add(torch.tensor(3)),
  TakeList: (x) => torch.cat([x, x]),
  ReturnList: (x) => torch.split(torch.arange(10).reshape([5, 2]).add(x.sum()), [1, 4], 0),
  Mutation: (x) => {
    const y = x.add(2)
    y.add_(1)
    return x.add(y)
  },
  MutationInput: (x) => {
    x.add_(1)
    return x.add(x.add(2))
  },
  MutationTorchTensorCall: (x) => {
    const y = torch.tensor(3).clone()
    y.add_(1)
    return x.add(y)
  },
}

const factories: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  FactoryFunctionCall: (x) => torch.add(torch.full(x.shape, 3), x),
  MutationFactory: (x) => {
    const y = torch.full(x.shape, 3)
    y.add_(1)
    return x.add(y)
  },
}

const passes: Readonly<Record<string, (gm: GraphModule, x: Tensor) => GraphModule>> = {
  CSEPass: (gm) => new CSEPass().run(gm).graphModule,
  eliminateDeadCode: (gm) => {
    gm.graph.eliminateDeadCode()
    gm.recompile()
    return gm
  },
  splitConstSubgraphs: (gm) => splitConstSubgraphs(gm),
  Transformer: (gm) => new Transformer(gm).transform(),
  legalizeGraph: (gm) => legalizeGraph(gm),
  reinplace: (gm, x) => reinplace(gm, x),
}

const values = (value: unknown): number[] =>
  Array.isArray(value) ? (value as unknown[]).flatMap(values) : Array.from((value as Tensor).contiguous().toTypedArray(), Number)

describe.each(Object.entries(passes))('%s', (passName, pass) => {
  const check = (capture: 'makeFx' | 'symbolicTrace', fn: (x: Tensor) => unknown): void => {
    const input = (): Tensor =>
      torch.tensor([
        [1, 2],
        [3, 4],
      ])
    const gm = capture === 'makeFx' ? (makeFx(fn)(input()) as GraphModule) : symbolicTrace(fn)
    const done = pass(gm, input())
    done.graph.lint()
    const [given, mine] = [input(), input()]
    expect(values(done.call(given))).toEqual(values(fn(mine)))
    expect(values(given)).toEqual(values(mine))
  }

  it.each(Object.entries(programs))('test_correctness: %s', (_, fn) => {
    check('makeFx', fn)
    // reinplace is for graphs of operators.
    if (passName !== 'reinplace') check('symbolicTrace', fn)
  })

  it.each(Object.entries(factories))('test_correctness_factory: %s', (_, fn) => check('makeFx', fn))
})
