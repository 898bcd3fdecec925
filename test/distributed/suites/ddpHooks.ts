// Communication hooks and static graphs of DistributedDataParallel, against PyTorch's recordings and against one process.
import { beforeAll, describe, expect, test } from 'vitest'
import { close, golden } from '../goldens.ts'
import type { World } from '../worlds.ts'

type Gradients = readonly (readonly number[] | null)[]

interface Recorded {
  readonly grads: readonly Gradients[]
  readonly final: readonly (readonly number[])[]
  readonly stats?: readonly number[]
}

interface Hooks {
  readonly recorded: Readonly<Record<string, Recorded>>
  readonly powerSGD: readonly {
    readonly options: unknown
    readonly grads: readonly Gradients[]
    readonly expected: readonly Gradients[] | null
  }[]
  readonly lossless: { readonly grad: readonly number[]; readonly expected: readonly number[]; readonly stats: readonly number[] }
  readonly wrappers: {
    readonly fp16: readonly Gradients[]
    readonly bf16: readonly Gradients[]
    readonly power: readonly { readonly grads: readonly Gradients[]; readonly seen: readonly unknown[] }[]
    readonly plain: readonly Gradients[]
  }
  readonly bytes: Readonly<Record<string, { readonly plain: number; readonly fp16: number; readonly bf16: number }>>
  readonly staticGraph: {
    readonly reentrant: { readonly all: readonly Gradients[]; readonly buckets: readonly unknown[] }
    readonly plain: { readonly all: readonly Gradients[]; readonly buckets: readonly unknown[] }
    readonly more: string
    readonly fewer: string
    readonly joined: { readonly grads: Gradients; readonly everywhere: unknown }
  }
  readonly buffers: Readonly<Record<string, Accumulated>>
  readonly refuses: Readonly<Record<string, string>>
}

/** What a rank has after accumulating gradients: batch norm's running mean after each forward, and the state dict. */
interface Accumulated {
  readonly means: Gradients
  readonly state: Gradients
}

/** Expects numbers within a part of the largest of them. */
function near(actual: Gradients | undefined, expected: Gradients | undefined, tolerance: number, where: string): void {
  expect(actual?.length, where).toBe(expected?.length)
  expected?.forEach((list, i) => {
    const own = actual?.[i]
    if (list === null || own === null || own === undefined) return expect(own, `${where} ${i}`).toBe(list)
    expect(own.length, `${where} ${i}`).toBe(list.length)
    const largest = Math.max(1e-3, ...list.map(Math.abs))
    list.forEach((value, at) => {
      if (!(Math.abs((own[at] ?? NaN) - value) <= tolerance * largest)) expect(own[at], `${where} ${i} element ${at}`).toBe(value)
    })
  })
}

const TOLERANCES: Readonly<Record<string, number>> = {
  'rank 1': 2e-4,
  'rank 2 without error feedback': 2e-4,
  'rank 3 in batches': 2e-4,
  'batched rank 1': 2e-4,
  'batched rank 3 without error feedback': 2e-4,
  // PyTorch adds up in halves.
  'fp16 wrapper': 2e-3,
  // Right angles are computed in halves as well.
  'fp16 wrapper of rank 1': 2e-2,
  'fp16 wrapper of rank 3 without error feedback': 2e-2,
  'static graph': 1e-5,
}

export const ddpHooksSuite = ({ size, results }: World): void =>
  void describe('ddp hooks', () => {
    let ranks: readonly Hooks[] = []
    beforeAll(() => {
      ranks = results<Hooks>('ddpHooks')
    })

    test.each(Object.entries(TOLERANCES))(
      '%s: gradients and weights are those of PyTorch, from the same first matrices (difference: powersgd-numbers)',
      (name, tolerance) => {
        const expected = golden<Record<string, Recorded>>(`ddp_hooks_w${size}`)
        expect(expected).toHaveLength(size)
        expected?.forEach((theirs, rank) => {
          const [own, other] = [ranks[rank]?.recorded[name], theirs[name]]
          other?.grads.forEach((grads, i) => near(own?.grads[i], grads, tolerance, `${name}, recorded step ${i}`))
          near(own?.final, other?.final, tolerance, `${name}, weights`)
          expect(own?.stats).toEqual(other?.stats)
        })
      },
    )

    test('PowerSGD computes what the algorithm says, with the gradients of all ranks in one process', () => {
      for (const { powerSGD } of ranks)
        for (const { options, grads, expected } of powerSGD)
          expected?.forEach((step, i) => near(grads[i], step, 2e-4, `${JSON.stringify(options)}, step ${i}`))
    })

    test('all ranks get the same gradients from PowerSGD', () => {
      const last = ranks.map(({ powerSGD }) => JSON.stringify(powerSGD.map(({ grads }) => grads)))
      expect(new Set(last).size).toBe(1)
      expect(ranks[0]?.powerSGD[1]?.grads.flat(2).every((value) => Number.isFinite(value))).toBe(true)
    })

    test('PowerSGD sends a gradient of low rank without loss, with fewer elements', () => {
      for (const { lossless } of ranks) {
        close(lossless.grad, lossless.expected)
        expect(lossless.stats).toEqual([600 / 50, 600, 50])
      }
    })

    test('a wrapped mean is the hook of that dtype, and PowerSGD goes with halves', () => {
      for (const { wrappers } of ranks) {
        // The hooks divide before they round.
        near(wrappers.fp16[0], wrappers.fp16[1], 1e-3, 'float16')
        near(wrappers.bf16[0], wrappers.bf16[1], 1e-2, 'bfloat16')
        wrappers.power.forEach(({ grads, seen }, i) => {
          expect(seen).toEqual([i === 0 ? 'float16' : 'bfloat16', [3], [3, 16], [16], [16, 16], [16], [16, 16], [16], [16, 12]])
          // The first steps send whole gradients.
          near(grads[0], wrappers.plain[0], i === 0 ? 2e-3 : 2e-2, 'halves')
          expect(grads.flat(2).every((value) => Number.isFinite(value))).toBe(true)
        })
      }
    })

    test('wrapped, PowerSGD sends half the bytes', () => {
      for (const { bytes } of ranks) {
        expect(Object.keys(bytes)).toEqual(['powerSGDHook', 'batchedPowerSGDHook'])
        for (const { plain, fp16, bf16 } of Object.values(bytes)) {
          expect(plain).toBeGreaterThan(0)
          // Each rank adds up an equal share, of as many elements on all ranks.
          for (const halves of [fp16, bf16]) expect(Math.abs(halves / plain - 0.5)).toBeLessThan(0.01)
        }
      }
    })

    test('a static graph may have a backward within the backward, of parameters that are used twice', () => {
      for (const { staticGraph } of ranks) {
        const { reentrant, plain } = staticGraph
        plain.all.forEach((grads, step) => near(reentrant.all[step], grads, 1e-5, `step ${step}`))
        expect(reentrant.buckets.length).toBeGreaterThan(1)
      }
    })

    test('a static graph that changes is an error that names the parameters', () => {
      for (const { staticGraph } of ranks) {
        expect(staticGraph.more).toMatch(
          /^DistributedError: DistributedDataParallel: Your training graph has changed in this iteration.*b\.weight \(1, 0 before\), b\.bias \(1, 0 before\)/,
        )
        expect(staticGraph.fewer).toMatch(/b\.weight \(0, 1 before\), b\.bias \(0, 1 before\)/)
      }
    })

    test('ranks with uneven inputs agree on what a static graph leaves out', () => {
      for (const { staticGraph } of ranks) {
        const { grads } = staticGraph.joined
        expect(grads.map((grad) => grad === null)).toEqual([false, false, false, false, false, false, true, true, false, false])
      }
      expect(new Set(ranks.map(({ staticGraph }) => JSON.stringify(staticGraph.joined.everywhere))).size).toBe(1)
    })

    test.each(['buffers', 'join', 'join of those left'])(
      "%s: batch norm's averages with noSync are those of PyTorch after each forward, and so is the end",
      (name) => {
        golden<Record<string, readonly Accumulated[]>>(`ddp_hooks_w${size}`)?.forEach((theirs, rank) => {
          const [own, expected] = [ranks[rank]?.buffers[name], theirs[name]?.[rank]]
          near(own?.means, expected?.means, 1e-5, 'means')
          near(own?.state, expected?.state, 1e-5, 'state')
        })
        // Ranks that have joined end with the same; others keep averages of their own.
        const states = new Set(ranks.map(({ buffers }) => JSON.stringify(buffers[name]?.state)))
        expect(states.size).toBe(name === 'buffers' ? size : 1)
      },
    )

    test('refuses what does not fit', () => {
      for (const { refuses } of ranks) {
        expect(refuses['early']).toMatch(/^ArgumentError: PowerSGDState: Expect startPowerSGDIter > 1 if useErrorFeedback or warmStart is enabled/)
        expect(refuses['group']).toMatch(/'?processGroup'? must be a ProcessGroup, or null for all ranks, got/)
        expect(refuses['rank']).toMatch(/'?matrixApproximationRank'? must be a positive integer, got 0/)
        expect(refuses['rate']).toMatch(/'?minCompressionRate'? must be a positive number, got 0/)
        expect(refuses['option']).toMatch(/unknown option 'rank'/)
        expect(refuses['state']).toMatch(/'?state'? must be a PowerSGDState, got null/)
        expect(refuses['batchedState']).toMatch(/^ArgumentError: batchedPowerSGDHook: .*'?state'? must be a PowerSGDState, got null/)
        expect(refuses['bucket']).toMatch(/must be the GradBucket/)
        expect(refuses['hook']).toMatch(/fp16CompressWrapper: .*'?hook'? must be a function, got null/)
        expect(refuses['static']).toMatch(/option 'staticGraph' must be true or false, got 1/)
      }
    })
  })
