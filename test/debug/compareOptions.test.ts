// What comparisons take, and what they say of anything else: the name of the argument, what it must be, what it is.
import { describe, expect, it } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { registerBackend } from 'tensorfx/compile'
import { compareBackends, compareTraining } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'
import { present } from '../../src/errors/index.ts'

const gm = symbolicTrace((x: Tensor) => x.mul(2))
const inputs = [torch.tensor([1, 2])]

async function said(run: () => Promise<unknown>): Promise<string> {
  try {
    await run()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return 'nothing'
}

describe('compareBackends', () => {
  const of = (options: object, graph: unknown = gm, values: unknown = inputs): Promise<string> =>
    said(async () => compareBackends(graph as never, values as never, { backends: ['eager'], ...options }))

  it('takes all its options', async () => {
    const options = { tol: 1e-3, reference: 'eager', whole: false, moreInputs: [inputs], gradients: false, worstInput: { tries: 1 } }
    expect(await of(options)).toBe('nothing')
  })

  it.each([
    [{ backends: 'eager' }, "compareBackends: argument 'options.backends' must be an array, got 'eager'"],
    [{ backends: [] }, "compareBackends: options.backends is empty; name at least one, e.g. ['inductor']."],
    [{ backends: ['eager', 3] }, 'compareBackends: a backend must be a name or a function (gm, inputs) => compiled, got 3.'],
    [{ moreInputs: 3 }, "compareBackends: argument 'options.moreInputs' must be an array, got 3"],
    [{ moreInputs: [inputs, 4] }, "compareBackends: argument 'options.moreInputs[1]' must be an array, got 4"],
    [{ tol: 0 }, "compareBackends: argument 'options.tol' must be a positive number, got 0"],
    [{ tol: '1' }, "compareBackends: option 'tol' must be a number, got '1'"],
    [{ reference: 'float32' }, "compareBackends: argument 'options.reference' must be 'float64' or 'eager', got 'float32'"],
    [{ gradients: 1 }, "compareBackends: option 'gradients' must be true or false, got 1"],
    [{ worstInput: { tries: 0 } }, "compareBackends: argument 'options.worstInput.tries' must be a whole number of at least 1, got 0"],
    [{ backend: ['eager'] }, "compareBackends: unknown option 'backend'"],
  ])('%j: %s', async (options, text) => {
    const message = await of(options)
    expect(message.slice(0, text.length)).toBe(text)
  })

  it('needs a graph and a list of inputs', async () => {
    expect(await of({}, 3)).toMatch(/^compareBackends: argument 'gm' must be a GraphModule/)
    expect(await of({}, gm, 3)).toMatch(/^compareBackends: argument 'inputs' must be an array, got 3/)
  })

  it('leaves the random generator as it was, also after an error', async () => {
    torch.manualSeed(5)
    const next = torch.rand([1]).item()
    torch.manualSeed(5)
    const drawing = symbolicTrace((x: Tensor) => torch.dropout(x, 0.5, true).matmul(torch.ones([3, 3])))
    expect(await of({}, drawing)).toMatch(/matmul/)
    expect(torch.rand([1]).item()).toBe(next)
  })

  it('names sets of inputs, and backends of one name, apart', async () => {
    const negative = (graph: GraphModule) => (x: Tensor) => (x.lt(0).any().item() ? x.mul(3) : (graph.forward(x as never) as Tensor))
    const backends = [negative, (graph: GraphModule): GraphModule => graph, negative, (graph: GraphModule): GraphModule => graph] as never[]
    const more = [[torch.tensor([3, 4])], [torch.tensor([-1, 4])], [torch.tensor([-7, 4])]]
    const result = await compareBackends(gm, inputs, { backends, moreInputs: more, whole: false })
    expect([...result.culprits].map(([name, culprit]) => [name, culprit?.set])).toEqual([
      ['negative', 2],
      ['backend', undefined],
      ['negative (2)', 2],
      ['backend (2)', undefined],
    ])
    expect(String(result)).toMatch(/^negative: 'mul' differs \(error 4\.4e-1; found alone, inputs 2\)$/m)
    const small = await result.minify('negative')
    expect((small.inputs as readonly Tensor[]).map((value) => value.lt(0).any().item())).toEqual([true])
  })

  it('runs registered backends on graphs of operators, and without their dumps and gradients', async () => {
    const seen: unknown[] = []
    registerBackend('options_looks', (graph) => {
      return (...values: never[]) => {
        seen.push([graph.meta['writeBacks'], torch.isGradEnabled()])
        return graph.forward(...values)
      }
    })
    const result = await compareBackends(gm, inputs, { backends: ['options_looks'] })
    expect(result.first).toBeNull()
    expect(new Set(seen.map(String))).toEqual(new Set([String([undefined, false])]))
  })
})

describe('compareTraining', () => {
  const step = (compile: (fn: (x: Tensor) => Tensor) => (x: Tensor) => Tensor): (() => unknown) => {
    const double = compile((x) => x.mul(2))
    return () => double(torch.ones([2]))
  }
  const of = (options: object, makeStep: unknown = step): Promise<string> =>
    said(async () => compareTraining(makeStep as never, { backends: ['eager'], ...options }))

  it.each([
    [{ backends: 'eager' }, "compareTraining: argument 'options.backends' must be an array, got 'eager'"],
    [{ backends: [] }, "compareTraining: options.backends is empty; name at least one, e.g. ['inductor']."],
    [{ steps: 0 }, "compareTraining: argument 'options.steps' must be a whole number of at least 1, got 0"],
    [{ steps: 1.5 }, "compareTraining: argument 'options.steps' must be a whole number of at least 1, got 1.5"],
    [{ tol: 0 }, "compareTraining: argument 'options.tol' must be a positive number, got 0"],
    [{ tol: '1' }, "compareTraining: option 'tol' must be a number, got '1'"],
    [{ reference: 'x' }, "compareTraining: argument 'options.reference' must be 'float64' or 'eager', got 'x'"],
    [{ seed: -1 }, "compareTraining: argument 'options.seed' must be a whole number, got -1"],
    [{ seed: 0.5 }, "compareTraining: argument 'options.seed' must be a whole number, got 0.5"],
    [{ step: 1 }, "compareTraining: unknown option 'step'"],
  ])('%j: %s', async (options, text) => expect((await of(options)).slice(0, text.length)).toBe(text))

  it('needs a function that returns one, and compiles something', async () => {
    expect(await of({}, 3)).toMatch(/^compareTraining: argument 'makeStep' must be /)
    expect(await of({}, () => 3)).toMatch(/^compareTraining: argument 'what makeStep returns' must be /)
    expect(await of({}, () => () => 0)).toBe(
      'compareTraining: the training compiles nothing: makeStep must compile its functions or modules with the `compile` that it is given.',
    )
  })

  it('takes all its options, and starts from the seed', async () => {
    const drawn: unknown[] = []
    const seeing = (compile: Parameters<typeof step>[0]): (() => unknown) => {
      drawn.push(torch.rand([1]).item())
      return step(compile)
    }
    torch.manualSeed(9)
    const next = torch.rand([1]).item()
    torch.manualSeed(9)
    const result = await compareTraining(seeing as never, { backends: ['eager'], steps: 3, tol: 1e-3, reference: 'eager', seed: 0 })
    expect([result.graphs, String(result)]).toEqual([[1, 1, 1], 'eager: right in 3 steps'])
    expect(torch.rand([1]).item()).toBe(next)
    for (const seed of [0, 7]) await compareTraining(seeing as never, { backends: ['eager'], seed })
    expect([drawn[1] === drawn[0], drawn[2] === drawn[0]]).toEqual([true, false])
    expect((await compareTraining(seeing as never, { backends: ['eager'] })).graphs).toEqual([1, 1])
    expect(drawn[3]).toBe(drawn[0])
  })

  it('stops at the first call that is wrong, and names the backend of the first culprit', async () => {
    const plusOne = (graph: GraphModule) => (x: Tensor) => [([graph.forward(x as never)].flat()[0] as unknown as Tensor).add(1)]
    const result = await compareTraining(step as never, { backends: ['eager', plusOne as never], steps: 2 })
    const culprit = present(result.culprits.get('plusOne') ?? undefined, 'a culprit')
    expect(culprit).toMatchObject({
      kind: 'wrong',
      step: 0,
      phase: 'forward',
      half: 'forward',
      set: 0,
      line: expect.stringMatching(/compareOptions\.test\.ts:\d+$/) as string,
    })
    expect([culprit.nodes.map(({ name }) => name), (culprit.inputs as readonly Tensor[]).map((value) => value.toArray())]).toEqual([
      ['mul'],
      [[1, 1]],
    ])
    expect([result.first?.backend, [...result.statuses]]).toEqual([
      'plusOne',
      [
        ['eager', 'right'],
        ['plusOne', 'wrong'],
      ],
    ])
  })
})
