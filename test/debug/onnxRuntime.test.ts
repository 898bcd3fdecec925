// What goes to onnxruntime and comes back, with a runtime that answers what the test says.
import { beforeEach, expect, it, vi } from 'vitest'
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { compareBackends, onnxSession } from 'tensorfx/debug'
import { symbolicTrace } from 'tensorfx/fx'
import type { GraphModule } from 'tensorfx/fx'

interface Sent {
  readonly dtype: string
  readonly data: unknown
  readonly dims: readonly number[]
}

const fake = vi.hoisted(() => {
  class Sending implements Sent {
    readonly dtype: string
    readonly data: unknown
    readonly dims: readonly number[]
    constructor(dtype: string, data: unknown, dims: readonly number[]) {
      this.dtype = dtype
      this.data = data
      this.dims = dims
    }
  }
  const state = {
    env: { wasm: { numThreads: 8 }, logLevel: 'warning' },
    options: [] as unknown[],
    feeds: [] as Record<string, Sent>[],
    released: 0,
    /** The names of the inputs that the session has. */
    inputNames: ['a', 'b'],
    answer: (_feeds: Record<string, Sent>): Record<string, unknown> => ({}),
  }
  return { state, Sending }
})

vi.mock('onnxruntime-web', () => ({
  env: fake.state.env,
  Tensor: fake.Sending,
  InferenceSession: {
    create: async (_model: Uint8Array, options: unknown) => {
      fake.state.options.push(options)
      return {
        inputNames: fake.state.inputNames,
        run: async (feeds: Record<string, Sent>) => {
          fake.state.feeds.push(feeds)
          return fake.state.answer(feeds)
        },
        release: async () => void fake.state.released++,
      }
    },
  },
}))

const { state } = fake
beforeEach(() => {
  Object.assign(state, { options: [], feeds: [], released: 0, inputNames: ['a', 'b'], answer: () => ({}) })
})

const t = torch.tensor
const sum = (): GraphModule => symbolicTrace((a: Tensor, b: Tensor) => torch.add(a, b))

/** A session of a + b whose result is this. */
async function resultOf(result: object | undefined, inputs: readonly Tensor[] = [t([1, 2]), t([3, 4])]): Promise<readonly Tensor[]> {
  const session = await onnxSession(sum(), inputs)
  const [output] = session.model.outputs
  state.answer = () => (result === undefined ? {} : { [output?.name ?? '']: result })
  return session.run(...inputs)
}

it('a session runs in one thread, on what is asked for, and says only errors', async () => {
  await onnxSession(sum(), [t([1]), t([2])])
  await onnxSession(sum(), [t([1]), t([2])], { executionProviders: ['webgpu', 'wasm'], optimize: 'basic' })
  expect([state.env, state.options]).toEqual([
    { wasm: { numThreads: 1 }, logLevel: 'error' },
    [
      { executionProviders: ['wasm'], graphOptimizationLevel: 'all', logSeverityLevel: 3 },
      { executionProviders: ['webgpu', 'wasm'], graphOptimizationLevel: 'basic', logSeverityLevel: 3 },
    ],
  ])
  await expect(onnxSession(sum(), [t([1]), t([2])], { optimise: 'all' } as never)).rejects.toThrow(/^onnxSession: unknown option 'optimise'/)
})

it('tensors are sent by name, with their dtype, bools as bytes; one that the session does not have is not', async () => {
  const base = t([1, 2, 3, 4])
  await resultOf({ data: new Float32Array([4, 6]), dims: [2] }, [base.narrow(0, 2, 2), t([3, 4])])
  expect(state.feeds).toEqual([
    { a: new fake.Sending('float32', new Float32Array([3, 4]), [2]), b: new fake.Sending('float32', new Float32Array([3, 4]), [2]) },
  ])
  state.inputNames = ['b']
  await resultOf({ data: new Float32Array([4, 6]), dims: [2] })
  expect(Object.keys(state.feeds[1] ?? {})).toEqual(['b'])
  const flags = symbolicTrace((a: Tensor) => torch.logicalNot(a))
  state.inputNames = ['a']
  const session = await onnxSession(flags, [t([true, false])])
  const [{ name } = { name: '' }] = session.model.outputs
  state.answer = () => ({ [name]: { data: Uint8Array.of(0, 1), dims: [2] } })
  const [result] = await session.run(t([true, false]))
  expect([state.feeds[2], result?.dtype, result?.toArray()]).toEqual([
    { a: new fake.Sending('bool', Uint8Array.of(1, 0), [2]) },
    'bool',
    [false, true],
  ])
  await expect(session.run()).rejects.toThrow('The exported graph takes 1 tensors, got 0.')
  await session.release()
  expect(state.released).toBe(1)
})

it('results are the tensors that the graph returns, wherever they are in memory', async () => {
  const memory = new Float32Array([9, 4, 6, 9])
  const [result] = await resultOf({ data: memory.subarray(1, 3), dims: [2] })
  expect([result?.dtype, result?.shape, result?.toArray()]).toEqual(['float32', [2], [4, 6]])
})

it('results that are not those of the graph are an error', async () => {
  await expect(resultOf(undefined)).rejects.toThrow(/^onnxruntime did not return '\w+'\.$/)
  await expect(resultOf({ data: new Float32Array(2), dims: [1, 2] })).rejects.toThrow('onnxruntime returned shape [1, 2] for [2].')
  await expect(resultOf({ data: ['a', 'b'], dims: [2] })).rejects.toThrow('onnxruntime returned texts.')
})

it('what it cannot hold is an error that says what to do', async () => {
  const half = (): Tensor => torch.ones([2], { dtype: 'bfloat16' })
  await expect(resultOf({ data: new Float32Array(2), dims: [2] }, [half(), half()])).rejects.toThrow(
    'onnxruntime-web has no tensors of dtype bfloat16; compare the graph in float32.',
  )
})

it('a comparison asks for its provider, and frees each session, also after an error', async () => {
  for (const [backend, provider] of [
    ['onnxruntime', 'wasm'],
    ['onnxruntime:webgpu', 'webgpu'],
  ] as const) {
    Object.assign(state, { options: [], released: 0 })
    const result = await compareBackends(sum(), [t([1, 2]), t([3, 4])], { backends: [backend] })
    expect(result.culprits.get(backend)).toMatchObject({ kind: 'failed', reason: expect.stringContaining('onnxruntime did not return') as string })
    expect(state.options.length).toBeGreaterThan(0)
    for (const options of state.options) expect(options).toMatchObject({ executionProviders: [provider] })
    expect(state.released).toBe(state.options.length)
  }
})
