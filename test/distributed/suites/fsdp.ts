// FullyShardedDataParallel against PyTorch's: training with every strategy, the order of gathering, freeing and reducing, and memory.
import { beforeAll, describe, expect, test } from 'vitest'
import { close, goldenSet } from '../goldens.ts'
import type { RecordedTensor } from '../goldens.ts'
import type { World } from '../worlds.ts'

interface Run {
  readonly losses: readonly number[]
  readonly grads: readonly (readonly [string, readonly number[] | null])[]
  readonly final: Readonly<Record<string, readonly number[]>>
  readonly peak: { readonly peakUnits: number; readonly units: number }
}

interface Training {
  readonly trained: Readonly<Record<string, Run>>
  readonly withoutPrefetch: Run
  readonly orders: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>
}

interface GoldenRun {
  readonly losses: readonly number[]
  readonly grads_step0_local: readonly (readonly [string, RecordedTensor | null])[]
  readonly final: Readonly<Record<string, RecordedTensor>>
}

const training = goldenSet('fsdp-train')
const runtime = goldenSet('fsdp-runtime')

export const fsdpSuite = ({ size, results }: World): void =>
  void describe('fsdp', () => {
    let ranks: readonly Training[] = []
    beforeAll(() => {
      ranks = results<Training>('fsdpTraining')
    })

    const runs = [...training].filter(([, golden]) => golden.world === size)

    test.each(runs)('%s: losses, gradients and weights of five steps are those of PyTorch', (key, golden) => {
      const name = key.slice('train_'.length, -'_w2'.length)
      expect(golden.ranks).toHaveLength(size)
      ;(golden.ranks as readonly GoldenRun[]).forEach((theirs, rank) => {
        const ours = ranks[rank]?.trained[name]
        close(ours?.losses, theirs.losses)
        expect(ours?.grads.map(([path]) => path)).toEqual(theirs.grads_step0_local.map(([path]) => path))
        theirs.grads_step0_local.forEach(([path, tensor], i) => {
          const grad = ours?.grads[i]?.[1] ?? null
          if (tensor === null) expect(grad, path).toBeNull()
          else close(grad ?? undefined, tensor.data)
        })
        expect(Object.keys(ours?.final ?? {}).length).toBe(Object.keys(theirs.final).filter((path) => ours?.final[path] !== undefined).length)
        for (const [path, values] of Object.entries(ours?.final ?? {})) close(values, theirs.final[path]?.data)
      })
    })

    test('at most the root and one unit are whole at a time, one more while the next is prefetched', () => {
      for (const { trained, withoutPrefetch } of ranks) {
        expect(withoutPrefetch.peak).toMatchObject({ peakUnits: 2, units: 0 })
        close(withoutPrefetch.losses, trained['Tower_FULL_SHARD_flat_sgd']?.losses)
        expect(trained['Tower_FULL_SHARD_flat_sgd']?.peak).toMatchObject({ peakUnits: 3, units: 0 })
      }
    })

    const orders = [...runtime].flatMap(([key, golden]) => {
      const [, strategy] = /^order_(.+)_w\d$/.exec(key) ?? []
      return golden.world === size && strategy !== undefined ? [[strategy, golden.ranks] as const] : []
    })

    test.each(orders)('%s gathers, frees and reduces in the order of PyTorch', (strategy, theirs) => {
      expect(theirs).toHaveLength(size)
      ;(theirs as readonly Readonly<Record<string, readonly (readonly (string | number)[])[]>>[]).forEach((expected, rank) => {
        for (const [settings, events] of Object.entries(expected)) {
          // Of a reduce-scatter PyTorch names output and input, we only what one rank sends.
          const words = events.map(([name, ...rest]) => {
            const numbers = rest.filter((item) => typeof item === 'number')
            return numbers.length > 0 ? `${name} ${numbers.at(-1)}` : [name, ...rest].join(' ')
          })
          const ours = ranks[rank]?.orders[strategy]?.[settings] ?? []
          // With forward prefetching PyTorch also gathers the first unit at the start of the second backward, long before it is needed; ours does not.
          const end = settings.includes('forward_prefetch=True') ? words.indexOf('-- backward 1') : words.length
          expect(ours.slice(0, end), settings).toEqual(words.slice(0, end))
          expect(ours.toSorted(), settings).toEqual(words.toSorted())
        }
      })
    })
  })
