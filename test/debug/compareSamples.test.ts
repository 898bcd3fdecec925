// Eager kernels beside onnxruntime-web, node by node and as whole graphs, over every sample of test/fx/samples.
import { describe, expect, it } from 'vitest'
import { compareBackends } from 'tensorfx/debug'
import { samples, variants } from '../fx/samples/all.ts'
import { traced } from '../fx/samples/harness.ts'
import { tenth } from '../helpers/rotation.ts'

/** Arguments that are fixed in the graph, which the inputs of the sample leave out. */
const FIXED: Readonly<Record<string, readonly unknown[]>> = { concrete_args: [false], 'concrete_args.none_arg': [3, null] }

/** Samples that cannot be compared, and why. */
const LEFT_OUT: Readonly<Record<string, string>> = { operators: 'it has no inputs: it calls a method that no tensor has' }

const all = [...samples.map((sample) => ({ ...sample, name: sample.golden })), ...variants]

describe('eager and onnxruntime agree within 1e-4', { timeout: 240_000 }, () => {
  it('in all samples but one', () => {
    expect(all.filter(({ inputs }) => inputs === null).map(({ name }) => name)).toEqual(Object.keys(LEFT_OUT))
    expect(all.length).toBeGreaterThanOrEqual(25)
  })

  it.each(
    tenth(
      all.filter(({ name }) => !(name in LEFT_OUT)),
      ({ name }) => name,
    ),
  )('in $name', async ({ name, inputs, ...sample }) => {
    const given = [...(inputs?.() ?? []), ...(FIXED[name] ?? [])]
    const result = await compareBackends(traced({ ...sample, inputs }), given, { backends: ['eager', 'onnxruntime'], tol: 1e-4 })
    expect([...result.culprits]).toEqual([
      ['eager', null],
      ['onnxruntime', null],
    ])
    // Every node was compared alone, and the whole graph ran.
    expect(result.notes).toEqual([])
    for (const row of result.rows)
      expect([row.node.name, row.alone.get('onnxruntime')]).toMatchObject([row.node.name, { status: 'ok', reason: null }])
  })
})
