// DistributedDataParallel against PyTorch's: losses, gradients and weights of training steps on 2 and 4 ranks, buckets, errors.
import { beforeAll, describe, expect, test } from 'vitest'
import { golden, close } from '../goldens.ts'
import type { World } from '../worlds.ts'

interface Trained {
  readonly text: string
  readonly losses: readonly number[]
  readonly buckets: readonly (readonly (readonly string[])[])[]
  readonly keys: readonly string[]
  readonly grads: Readonly<Record<string, readonly number[]>>
  readonly final: Readonly<Record<string, readonly number[]>>
}

interface Ddp {
  readonly trained: Readonly<Record<string, Trained>>
  readonly asBucketView: Trained
  readonly commHook: { readonly seen: readonly unknown[]; readonly grads: Trained['grads'] }
  readonly compressHooks: {
    readonly [K in 'fp16' | 'bf16']: { readonly grads: unknown; readonly expected: unknown; readonly bytes: number }
  } & { readonly plain: Trained['grads']; readonly expected: Trained['grads'] }
  readonly join: {
    readonly results: Readonly<Record<string, { readonly returned: unknown; readonly final: Trained['final']; readonly expected: Trained['final'] }>>
    readonly early: string
    readonly nested: string
  }
  readonly noSync: Readonly<Record<'inside' | 'after' | 'alone' | 'together', Trained['grads']>>
  readonly startsEqual: { readonly atStart: readonly unknown[]; readonly seen: unknown }
  readonly unusedIsAnError: string
  readonly unusedIsFound: Readonly<Record<string, readonly number[] | null>>
  readonly refuses: Readonly<Record<string, string>>
  readonly buffers: { readonly atStart: readonly number[]; readonly afterForward: readonly number[]; readonly batches: number }
  readonly broadcastFromRank0: Readonly<Record<string, readonly number[]>>
  readonly unusedParameter: { readonly error: string; readonly found: Readonly<Record<string, readonly number[] | null>> }
}

interface GoldenRank {
  readonly str: string
  readonly losses: readonly number[]
  readonly grads_step0: Readonly<Record<string, { readonly data: readonly number[] }>>
  readonly final: Readonly<Record<string, { readonly data: readonly number[] }>>
  readonly state_dict_keys: readonly string[]
  readonly buckets_per_step: readonly (readonly { readonly params: readonly string[] }[])[]
  readonly logging: Readonly<Record<string, unknown>>
  readonly reference?: {
    readonly losses_full_batch: readonly number[]
    readonly final: Readonly<Record<string, { readonly data: readonly number[] }>>
  }
}

type Tensors = Readonly<Record<string, { readonly data: readonly number[] } | null>>

interface GoldenApi {
  readonly no_sync_local: Tensors
  readonly after_sync: Tensors
  readonly unused_error: { readonly error: string }
  readonly unused_found: Tensors
  readonly broadcast_from_rank0: Tensors
  readonly buffers_at_construction: { readonly data: readonly number[] }
  readonly buffers_after_forward: { readonly data: readonly number[] }
  readonly num_batches: number
  readonly no_grad_params: { readonly error: string }
}

/** `bn.running_mean` is `bn.runningMean`. */
const ownName = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Compares what is there by name. */
function closeAll(actual: Readonly<Record<string, readonly number[] | null>> | undefined, expected: Tensors): void {
  for (const [name, tensor] of Object.entries(expected)) {
    const ours = actual?.[ownName(name)]
    if (tensor === null) expect(ours, name).toBeNull()
    else close(ours ?? undefined, tensor.data, name)
  }
}

export const ddpSuite = ({ size, results }: World): void =>
  void describe('ddp', () => {
    let ranks: readonly Ddp[] = []
    beforeAll(() => {
      ranks = results<Ddp>('ddp')
    })

    test.each([
      'Mlp 25',
      'Mlp 0.001',
      'Mlp 0.0002',
      'Tower 25',
      'Tower 0.001',
      'Tower 0.0002',
      'CompositeModel 25',
      'CompositeModel 0.0002',
      'Odd 25',
      'Tied 25',
      'ConvBn 25',
    ])('%s MiB: losses, gradients and weights of four steps are those of PyTorch', (key) => {
      const expected = golden<GoldenRank>(`ddp_${key.replace(' ', '_cap')}_w${size}`)
      if (expected === null) return expect(golden(`ddp_${key.replace(' ', '_cap')}_w${size === 2 ? 4 : 2}`)).not.toBeNull()
      ranks.forEach(({ trained }, rank) => {
        const [ours, theirs] = [trained[key], expected[rank]]
        expect(ours?.text).toBe(theirs?.str)
        expect(ours?.keys).toEqual(theirs?.state_dict_keys.map(ownName))
        close(ours?.losses, theirs?.losses)
        closeAll(ours?.grads, theirs?.grads_step0 ?? {})
        closeAll(ours?.final, theirs?.final ?? {})
        // One process with the whole batch.
        closeAll(ours?.final, theirs?.reference?.final ?? {})
        const mean = (step: number): number => ranks.reduce((sum, other) => sum + (other.trained[key]?.losses[step] ?? NaN), 0) / size
        theirs?.reference?.losses_full_batch.forEach((loss, step) => close([mean(step)], [loss]))
        expect(ours?.buckets).toEqual(theirs?.buckets_per_step.map((step) => step.map(({ params }) => params)))
        const bytes = (step: number): string =>
          (ours?.buckets[step] ?? []).map((names) => 4 * names.reduce((sum, name) => sum + (ours?.final[name]?.length ?? NaN), 0)).join(', ')
        expect(bytes(0)).toBe(theirs?.logging['bucket_sizes'])
        expect(bytes(1)).toBe(theirs?.logging['rebuilt_bucket_sizes'])
      })
    })

    test('the first step sends one bucket, later ones send buckets of the limit, in the order in which gradients come', () => {
      const first = ranks[0]?.trained['Tower 0.0002']
      expect(first?.buckets[0]).toHaveLength(1)
      expect(first?.buckets[0]?.[0]?.[0]).toBe('inp.weight')
      const later = first?.buckets[1] ?? []
      expect(later).toEqual(first?.buckets[3])
      expect(later[0]?.every((name) => /^head|^blocks\.2\.down/.test(name))).toBe(true)
      expect(later.at(-1)?.some((name) => name.startsWith('inp'))).toBe(true)
      expect(later.flat().toSorted()).toEqual(first?.buckets[0]?.[0]?.toSorted())
      expect(new Set(ranks.map(({ trained }) => JSON.stringify(trained['Tower 0.0002']?.buckets))).size).toBe(1)
    })

    test('gradients that are views of the buckets are the same', () => {
      for (const { asBucketView, trained } of ranks) expect(asBucketView.final).toEqual(trained['Tower 0.0002']?.final)
    })

    test('a communication hook sees the bucket, and sends it', () => {
      for (const { commHook, trained } of ranks) {
        const names = ['net.0.weight', 'net.0.bias', 'net.2.weight', 'net.2.bias']
        expect(commHook.seen).toEqual([[0, true, 66, names, [[7, 5], [7], [3, 7], [3]]]])
        for (const [name, data] of Object.entries(commHook.grads)) close(data, trained['Mlp 25']?.grads[name])
      }
    })

    test('gradients that travel as halves are those of arithmetic, with half the bytes (difference: compressed-sums)', () => {
      for (const { compressHooks } of ranks) {
        for (const name of ['fp16', 'bf16'] as const) {
          expect(compressHooks[name].grads).toEqual(compressHooks[name].expected)
          // 66 gradients, filled up to a multiple of the ranks: to the others once, and back once, of two bytes each.
          expect(compressHooks[name].bytes).toBe((2 * (size - 1) * 2 * Math.ceil(66 / size) * size) / size)
        }
        for (const [name, data] of Object.entries(compressHooks.expected ?? {})) close(compressHooks.plain[`module.${name}`], data)
      }
    })

    test('join trains on uneven inputs as one process with the ranks that are left', () => {
      for (const [rank, { join }] of ranks.entries()) {
        for (const [way, { returned, final, expected }] of Object.entries(join.results)) {
          expect(returned).toBe(rank)
          expect(Object.keys(final)).toEqual(Object.keys(expected))
          for (const [name, data] of Object.entries(expected)) {
            if (way === 'unused and compressed') data.forEach((value, i) => expect(final[name]?.[i]).toBeCloseTo(value, 2))
            else close(final[name], data, `${way} ${name}`)
          }
        }
        expect(join.early).toBe('DistributedError: Detected at least one rank that exhausted inputs. Throwing across all ranks.')
        expect(join.nested).toMatch(/^DistributedError: join does not nest/)
      }
      // After it all ranks have the same.
      expect(new Set(ranks.map(({ join }) => JSON.stringify(Object.values(join.results).map(({ final }) => final)))).size).toBe(1)
    })

    test('noSync keeps gradients local; the next backward sends the sum', () => {
      const locals = ranks.map(({ noSync }) => noSync.inside['module.net.2.bias'] ?? [])
      expect(new Set(locals.map(String)).size).toBe(size)
      const afterwards = ranks.map(({ noSync }) => noSync.after['module.net.2.bias'] ?? [])
      expect(new Set(afterwards.map(String)).size).toBe(1)
      for (const { noSync } of ranks) {
        for (const [name, data] of Object.entries(noSync.alone)) close(noSync.inside[`module.${name}`], data)
        for (const [name, data] of Object.entries(noSync.together)) close(noSync.after[`module.${name}`], data)
      }
    })

    test("parameters start as rank 0's, and buffers become rank 0's before each forward", () => {
      for (const { startsEqual } of ranks) expect(startsEqual).toEqual({ atStart: [[[1, 1]], [0]], seen: [10] })
    })

    test('a parameter that takes no part is named at the end of backward', () => {
      for (const { unusedIsAnError } of ranks)
        expect(unusedIsAnError).toMatch(/reached no gradient for net\.2\.weight, net\.2\.bias,.*findUnusedParameters: true/)
    })

    test('findUnusedParameters gives zeros where another rank used the parameter, and null where none did', () => {
      ranks.forEach(({ unusedIsFound }) => {
        expect(unusedIsFound['module.u.weight']).toBeNull()
        expect(unusedIsFound['module.onlyRank1.bias']).toEqual([2 / size, 2 / size, 2 / size, 2 / size])
      })
      expect(new Set(ranks.map(({ unusedIsFound }) => JSON.stringify(unusedIsFound))).size).toBe(1)
    })

    test('noSync, broadcasts and unused parameters are those of PyTorch', () => {
      const expected = golden<GoldenApi>(`ddp_api_w${size}`)
      expect(expected).toHaveLength(size)
      expected?.forEach((theirs, rank) => {
        const ours = ranks[rank]
        closeAll(ours?.noSync.inside, theirs.no_sync_local)
        closeAll(ours?.noSync.after, theirs.after_sync)
        // PyTorch says so in the next forward, with the parameters' numbers; ours at the end of backward, with their names.
        expect(theirs.unused_error.error).toMatch(/did not receive grad for rank \d: 2 3/)
        expect(ours?.unusedParameter.error).toMatch(/reached no gradient for u\.weight, u\.bias,/)
        closeAll(ours?.unusedParameter.found, theirs.unused_found)
        closeAll(ours?.broadcastFromRank0, theirs.broadcast_from_rank0)
        close(ours?.buffers.atStart, theirs.buffers_at_construction.data)
        close(ours?.buffers.afterForward, theirs.buffers_after_forward.data)
        expect(ours?.buffers.batches).toBe(theirs.num_batches)
        expect(ours?.refuses['noGrad']).toBe(`ArgumentError: ${theirs.no_grad_params.error}`)
      })
    })

    test('refuses models that differ between ranks as PyTorch does', () => {
      const [counts, shapes] = ['ddp_mismatch_count', 'ddp_mismatch'].map((name) => golden<{ readonly error: string }>(`${name}_w${size}`))
      expect([counts?.length, shapes?.length]).toEqual([size, size])
      ranks.forEach(({ refuses }, rank) => {
        expect(refuses['count']).toBe(`ArgumentError: ${counts?.[rank]?.error ?? ''}`)
        // There only ranks with another shape than rank 0 hear of it; rank 0 waits for them until its timeout.
        expect(refuses['shape']).toBe(`ArgumentError: ${shapes?.[1]?.error ?? ''}`)
      })
    })

    test('refuses what is not a module, and unknown options', () => {
      ranks.forEach(({ refuses }) => {
        expect(refuses['noModule']).toMatch(/argument 'module' must be a Module/)
        expect(refuses['option']).toMatch(/unknown option 'bucketCap'.*bucketCapMb/)
      })
    })
  })
