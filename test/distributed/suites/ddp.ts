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
  readonly noSync: Readonly<Record<'inside' | 'after' | 'alone' | 'together', Trained['grads']>>
  readonly startsEqual: { readonly atStart: readonly unknown[]; readonly seen: unknown }
  readonly unusedIsAnError: string
  readonly unusedIsFound: Readonly<Record<string, readonly number[] | null>>
  readonly refuses: Readonly<Record<string, string>>
}

interface GoldenRank {
  readonly str: string
  readonly losses: readonly number[]
  readonly grads_step0: Readonly<Record<string, { readonly data: readonly number[] }>>
  readonly final: Readonly<Record<string, { readonly data: readonly number[] }>>
  readonly state_dict_keys: readonly string[]
  readonly buckets_per_step: readonly (readonly { readonly params: readonly string[] }[])[]
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
    ])('%s MiB: losses, gradients and weights of four steps are those of PyTorch', (key) => {
      const expected = golden<GoldenRank>(`ddp_${key.replace(' ', '_cap')}_w${size}`)
      if (expected === null) return expect(golden(`ddp_${key.replace(' ', '_cap')}_w${size === 2 ? 4 : 2}`)).not.toBeNull()
      ranks.forEach(({ trained }, rank) => {
        const [ours, theirs] = [trained[key], expected[rank]]
        expect(ours?.text).toBe(theirs?.str)
        expect(ours?.keys).toEqual(theirs?.state_dict_keys)
        close(ours?.losses, theirs?.losses)
        for (const [name, { data }] of Object.entries(theirs?.grads_step0 ?? {})) close(ours?.grads[name], data)
        for (const [name, { data }] of Object.entries(theirs?.final ?? {})) close(ours?.final[name], data)
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

    test('refuses models without gradients, models that differ between ranks, and unknown options', () => {
      ranks.forEach(({ refuses }, rank) => {
        expect(refuses['noGrad']).toBe("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.")
        expect(refuses['noModule']).toMatch(/module must be a Module/)
        expect(refuses['option']).toMatch(/unknown option 'bucketCap'.*bucketCapMb/)
        const [own, other] = rank === 0 ? [2, 1] : [1, 2]
        expect(refuses['count']).toBe(
          `DDP expects same model across all ranks, but Rank ${rank} has ${own} params, while rank ${rank === 0 ? 1 : 0} has inconsistent ${other} params.`,
        )
        expect(refuses['shape']).toBe('[1]: params[0] in this process with sizes [5, 4] appears not to match sizes of the same param in process 0.')
      })
    })
  })
