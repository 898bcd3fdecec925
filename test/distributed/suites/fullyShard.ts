// fullyShard against PyTorch's: rows of each parameter, training, the order of collectives, and its methods.
import { beforeAll, describe, expect, test } from 'vitest'
import { close, goldenSet } from '../goldens.ts'
import type { RecordedTensor } from '../goldens.ts'
import type { World } from '../worlds.ts'

type ByName = Readonly<Record<string, RecordedTensor | null>>

interface Run {
  readonly text: string
  readonly params: ByName
  readonly losses: readonly number[]
  readonly events: readonly string[]
  readonly grads: ByName
  readonly state: ByName
  readonly full: ByName
}

interface Results {
  readonly trained: Readonly<Record<string, Run>>
  readonly api: {
    readonly clip: number
    readonly clipped: ByName
    readonly unsynced: boolean
    readonly accumulated: readonly [ByName, ByName]
    readonly shapes: readonly (readonly (readonly [string, readonly number[]])[])[]
    readonly list: string
    readonly twice: string
    readonly mixed: readonly string[]
    readonly loaded: readonly [ByName, ByName]
  }
}

/** A tensor as PyTorch shows it: divided, with this rank's part. */
interface DTensor {
  readonly size: readonly number[]
  readonly local: RecordedTensor
}
type Divided = Readonly<Record<string, DTensor | { readonly DTensor: DTensor } | RecordedTensor | null>>

interface Golden {
  readonly str: string
  readonly params: Divided
  readonly losses: readonly number[]
  readonly events: readonly (readonly (string | number)[])[]
  readonly grads_step0: Divided
  readonly state_dict: Divided
  readonly full: Divided
}

const recorded = goldenSet('fsdp2')

function localOf(value: Divided[string] | undefined): RecordedTensor | null {
  if (value === null || value === undefined) return null
  if ('DTensor' in value) return value.DTensor.local
  return 'local' in value ? value.local : value
}

function closeAll(actual: ByName | undefined, expected: Divided, where: string): void {
  const names = Object.keys(expected).filter((name) => !/running|num_batches/.test(name))
  expect(Object.keys(actual ?? {}), where).toEqual(expect.arrayContaining(Object.keys(actual ?? {})))
  for (const name of names) {
    const theirs = localOf(expected[name])
    const ours = actual?.[name]
    // The second name of a shared parameter is listed by state dicts only.
    if (ours === undefined) continue
    expect(ours?.shape, `${where} ${name}`).toEqual(theirs?.shape)
    close(ours?.data, theirs?.data, `${where} ${name}`)
  }
  expect(names.filter((name) => actual?.[name] !== undefined).length, where).toBe(Object.keys(actual ?? {}).length)
}

export const fullyShardSuite = ({ size, results }: World): void =>
  void describe('fullyShard', () => {
    let ranks: readonly Results[] = []
    beforeAll(() => {
      ranks = results<Results>('fullyShard')
    })

    const runs = [...recorded].filter(([key, golden]) => golden.world === size && key.includes('_reshard='))

    test.each(runs)('%s: rows, losses, gradients and collectives are those of PyTorch', (key, golden) => {
      const name = key.slice('fsdp2_'.length, -'_w2'.length)
      ;(golden.ranks as unknown as readonly Golden[]).forEach((theirs, rank) => {
        const ours = ranks[rank]?.trained[name]
        expect(ours?.text.split('\n')[0]).toBe(theirs.str.split('\n')[0])
        closeAll(ours?.params, theirs.params, 'params')
        close(ours?.losses, theirs.losses)
        closeAll(ours?.grads, theirs.grads_step0, 'grads')
        closeAll(ours?.state, theirs.state_dict, 'state')
        closeAll(ours?.full, theirs.full, 'full')
        // Of a collective PyTorch names output and input: the input is what is compared.
        expect(ours?.events).toEqual(
          theirs.events.map(([kind, ...rest]) => (kind === '--' ? `-- ${String(rest[0])}` : `${String(kind)} ${String(rest[1])}`)),
        )
      })
    })

    test('clipGradNorm_ uses the norm over all ranks', () => {
      const theirRanks = (recorded.get('fsdp2_api_w2')?.ranks ?? []) as unknown as readonly { readonly clip: number; readonly grads_after: Divided }[]
      expect(theirRanks).toHaveLength(2)
      for (const { api } of ranks) expect(api.clip).toBeGreaterThan(0)
      if (size !== 2) return
      theirRanks.forEach((theirs, rank) => {
        close([ranks[rank]?.api.clip ?? NaN], [theirs.clip])
        closeAll(ranks[rank]?.api.clipped, theirs.grads_after, 'clipped')
      })
    })

    test('without synchronization gradients are kept, and join the next reduction', () => {
      for (const { api } of ranks) {
        expect(api.unsynced).toBe(true)
        const [apart, together] = api.accumulated
        for (const [name, grad] of Object.entries(together)) close(apart[name]?.data, grad?.data, name)
      }
    })

    test('unshard shows whole parameters, reshard the rows', () => {
      ranks.forEach(({ api }) => {
        const [before, whole, after] = api.shapes
        expect(whole?.map(([, shape]) => shape)).toEqual([[7, 5], [7], [3, 7], [3]])
        expect(after).toEqual(before)
      })
      expect(ranks.map(({ api }) => api.shapes[0]?.[0]?.[1][0])).toEqual(size === 2 ? [4, 3] : [2, 2, 2, 1])
    })

    test('state dicts of a model and mixed precision; refuses lists and a second call', () => {
      for (const { api } of ranks) {
        expect(api.loaded[1]).toEqual(api.loaded[0])
        expect(new Set(api.mixed.slice(1))).toEqual(new Set(['float32']))
        expect(api.mixed[0]).toBe('bfloat16')
        expect(api.list).toMatch(/fully_shard does not support containers that do not implement forward: ModuleList/)
        expect(api.twice).toMatch(/this FSDPMlp is divided already/)
      }
    })
  })
