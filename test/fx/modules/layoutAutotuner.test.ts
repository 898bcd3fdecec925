// genLayoutAutotuner: regions are measured with and without their layout. PyTorch's gen_mkl_autotuner.
import { expect, it } from 'vitest'
import { compile, nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Graph, GraphModule } from 'tensorfx/fx'
import { applyLayout, genLayoutAutotuner, optimizeForInference } from 'tensorfx/fx/experimental'
import type { AutotunerOptions, Layout } from 'tensorfx/fx/experimental'
import { detInit, detInput } from '../../helpers/deterministic.ts'

/** A clock that only calls move. */
let clock = 0
const now = (): number => clock

/** A layer that doubles its input, in some milliseconds, and remembers what it got. */
class Timed extends nn.Module {
  readonly seen: number[][] = []
  readonly ms: number
  readonly fast: number
  constructor(ms: number, fast: number) {
    super()
    this.ms = ms
    this.fast = fast
  }
  override forward(x: Tensor): Tensor {
    clock += this.ms
    this.seen.push(x.toArray() as number[])
    return x.mul_(2)
  }
}

function convert(x: Tensor): Tensor {
  clock += 1
  return x.clone()
}

const made: Timed[] = []
const layout: Layout = {
  enter: convert,
  leave: convert,
  supports: (node) => node.op === 'call_module',
  convert: (layer) => {
    const { fast } = layer as Timed
    made.push(new Timed(fast, 0))
    return made.at(-1) as Timed
  },
}

/** `slow` takes 5 ms and 1 with the layout, `fine` 5 and 4; each region has two conversions, of 1 ms each. */
function model(): { readonly gm: GraphModule; readonly slow: Timed; readonly fine: Timed } {
  const graph = new Graph()
  const a = graph.callModule('block.slow', [graph.callMethod('add', [graph.placeholder('x'), 1])])
  graph.output(graph.callModule('fine', [graph.callFunction(torch.neg, [a])]))
  const [slow, fine] = [new Timed(5, 1), new Timed(5, 4)]
  return { gm: new GraphModule({ 'block.slow': slow, fine }, graph), slow, fine }
}

it('a region computes in the layout if that is faster, conversions included', () => {
  const { gm, slow, fine } = model()
  made.length = 0
  const heuristic = genLayoutAutotuner([torch.tensor([1, 2])], layout, { now, iters: 3, warmup: 2 })
  const regions = applyLayout(gm, { ...layout, heuristic })
  expect(regions.map(({ nodes }) => nodes.map(String))).toEqual([['block_slow']])
  expect([gm.attribute('block.slow') === made[1], gm.attribute('fine') === fine]).toEqual([true, true])
  // The model ran once; then each region, warm-up included, on the values that the model computes. It may write to them, but not to the model's.
  expect(slow.seen[0]).toEqual([2, 3])
  expect(fine.seen[0]).toEqual([-4, -6])
  expect([slow.seen.length, fine.seen.length, made[0]?.seen.length, made[2]?.seen.length]).toEqual([6, 6, 5, 5])
  expect([made[0]?.seen[0], made[2]?.seen[0]]).toEqual([
    [2, 3],
    [-4, -6],
  ])
  expect((gm.call(torch.tensor([1, 2])) as Tensor).toArray()).toEqual([-8, -12])
})

it('one heuristic serves several models', () => {
  const heuristic = genLayoutAutotuner([torch.tensor([1, 2])], layout, { now, iters: 1 })
  for (let i = 0; i < 2; i++) expect(applyLayout(model().gm, { ...layout, heuristic })).toHaveLength(1)
})

it('compiled layers against eager ones, on a real clock: whatever it picks, the result is the same', () => {
  class Compiled extends nn.Module {
    readonly run: (x: Tensor) => Tensor
    constructor(layer: nn.Module) {
      super()
      this.run = compile((x: Tensor) => (layer as nn.Linear).call(x))
    }
    override forward(x: Tensor): Tensor {
      return this.run(x)
    }
  }
  const net = detInit(new nn.Sequential(new nn.Linear(4, 4), new nn.ReLU(), new nn.Linear(4, 2))).eval()
  const x = detInput([3, 4], 2)
  const compiled: Layout = {
    enter: 'contiguous',
    leave: 'contiguous',
    supports: (node) => node.op === 'call_module',
    convert: (layer) => new Compiled(layer),
  }
  let answer: unknown
  const measured = genLayoutAutotuner([x], compiled, { iters: 2 })
  const picked = optimizeForInference(net, { layoutOptimize: { ...compiled, heuristic: (region) => (answer = measured(region)) === true } })
  expect(typeof answer).toBe('boolean')
  expect((picked as GraphModule).attribute('0') instanceof Compiled).toBe(answer)
  expect(torch.allclose((picked as GraphModule).call(x) as Tensor, net.call(x), { atol: 1e-6 })).toBe(true)
})

it('what it cannot use is an error', () => {
  const tuner = (options: unknown): unknown => genLayoutAutotuner([], layout, options as AutotunerOptions)
  expect(() => tuner({ iters: 0 })).toThrow("genLayoutAutotuner: argument 'options.iters' must be an integer from 1, got 0")
  expect(() => tuner({ warmup: -1 })).toThrow("argument 'options.warmup' must be an integer from 0, got -1")
  expect(() => tuner({ now: 3 })).toThrow("argument 'options.now' must be a function that returns milliseconds, got 3")
  expect(() => tuner({ repeat: 3 })).toThrow('repeat')
  expect(() => genLayoutAutotuner([], {} as Layout)).toThrow("argument 'layout.enter' must be a function or the name of a method")
  expect(() => genLayoutAutotuner(3 as never, layout)).toThrow("argument 'exampleInputs'")
})
