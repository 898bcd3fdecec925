// The graphs of models on the GPU against inductor, graph by graph, with results that are awaited: this runs in Node and in a page. The bound is that of models.device.ts.
import { beforeAll, describe, expect, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import type { GraphModule } from 'tensorfx/fx'
import { compileGraph, init, stats } from 'tensorfx/webgpu'
import { compileFx } from '../../../src/inductor/pipeline.ts'
import { Tensor as AnyTensor } from '../../../src/tensor/index.ts'
import { NOISE, OPTIMIZERS, cases, prepared, worst } from './modelCases.ts'

beforeAll(async () => init({ thread: false }))

/** A graph, and what it was called with. */
interface Recorded {
  readonly gm: GraphModule
  readonly values: readonly unknown[]
}

let recorded: Recorded[] = []
const copyOf = (value: unknown): unknown => (value instanceof AnyTensor ? value.detach().clone() : value)

registerBackend('recording', (gm) => {
  delete gm.meta['writeBacks']
  return (...values: readonly unknown[]) => {
    recorded.push({ gm, values: values.map(copyOf) })
    return gm.call(...values)
  }
})

const tensorsOf = (results: unknown): readonly Tensor[] => (results as readonly unknown[]).filter((result) => result instanceof AnyTensor) as Tensor[]
const onWasm = ({ gm }: Recorded, values: readonly unknown[]): readonly Tensor[] => torch.noGrad(() => tensorsOf(compileFx(gm, values)(...values)))

/** What each graph gives on the GPU and by inductor; and by inductor with `moved`, the model's input or first weight, changed a little. */
async function compareGraphs(moved: Tensor): Promise<void> {
  const values = moved.toArray()
  expect(recorded.length).toBeGreaterThan(0)
  for (const one of recorded) {
    // oxlint-disable-next-line no-await-in-loop -- one GPU
    const graph = await compileGraph(one.gm, one.values)
    expect(graph.onWasm).toEqual([])
    // oxlint-disable-next-line no-await-in-loop -- as above
    const got = tensorsOf(await graph.run(...one.values))
    graph.release()
    const want = onWasm(one, one.values.map(copyOf))
    const noise = one.values.map((value) => {
      const isIt = value instanceof AnyTensor && value.dtype === torch.float32 && JSON.stringify(value.toArray()) === JSON.stringify(values)
      return isIt ? value.add(torch.randn(value.shape).mul(NOISE).mul(value.abs().max())) : copyOf(value)
    })
    const [error, own] = [worst(got, want), worst(onWasm(one, noise), want)]
    expect(error, `with the input changed by ${NOISE} inductor differs from itself by ${own}`).toBeLessThan(2 * own)
  }
}

describe.each(Object.entries(cases))('the graphs of %s', (_, given) => {
  test('forward', async () => {
    const { model, input } = prepared(given, 0)
    model.eval()
    recorded = []
    torch.noGrad(() => compile((x: Tensor) => model.forward(x), { backend: 'recording' })(input))
    await compareGraphs(movedOf(model, input))
  })

  test('a step of training with Adam', async () => {
    const { model, input, target } = prepared(given, 0)
    const moved = movedOf(model, input).detach().clone()
    const rule = new OPTIMIZERS.Adam(model.parameters(), { lr: 1e-3 })
    const step = compile(
      (x: Tensor, y: Tensor) => {
        rule.zeroGrad()
        const loss = given.loss(model.forward(x), y)
        loss.backward()
        rule.step()
        return loss.detach()
      },
      { backend: 'recording' },
    )
    recorded = []
    step(input, target)
    await compareGraphs(moved)
    expect(stats()?.dispatches).toBeGreaterThan(0)
  })
})

/** What is changed a little: the input, or where that is integers the first parameter. */
function movedOf(model: { parameters(): Iterable<Tensor> }, input: Tensor): Tensor {
  const [first] = model.parameters()
  return input.dtype === torch.float32 || first === undefined ? input : first
}
