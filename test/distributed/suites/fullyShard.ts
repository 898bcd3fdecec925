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

interface Placed {
  readonly losses: readonly number[]
  readonly full: ByName
  readonly parts: ByName
  readonly grads: ByName
  readonly moments: ByName
}

interface Results {
  readonly unchecked: { readonly sequence: number; readonly wrong: readonly number[] }
  readonly placements: {
    readonly rows: Placed
    readonly columns: Placed
    readonly negative: ByName
    readonly mlp: ByName
    readonly uneven: string
    readonly outside: string
    readonly notANumber: string
  }
  readonly trained: Readonly<Record<string, Run>>
  readonly api: {
    readonly clip: number
    readonly clipped: ByName
    readonly unsynced: Readonly<Record<string, boolean>>
    readonly accumulated: readonly [ByName, ByName]
    readonly shapes: readonly (readonly (readonly [string, readonly number[]])[])[]
    readonly list: string
    readonly twice: string
    readonly mixed: readonly string[]
    readonly mixedGrads: ByName
    readonly tree: { readonly tree: string; readonly names: unknown }
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
  readonly class: string
  readonly params: Divided
  readonly losses: readonly number[]
  readonly events: readonly (readonly (string | number)[])[]
  readonly grads_step0: Divided
  readonly state_dict: Divided
  readonly full: Divided
}

/** What PyTorch recorded besides training, on two ranks. */
interface GoldenApi {
  readonly tree: readonly [tree: string, names: unknown]
  readonly clip: number
  readonly grads_after: Divided
  readonly nosync_grads_none: Readonly<Record<string, boolean>>
  readonly accumulated: Divided
  readonly before_unshard: readonly (readonly [name: string, type: string, shape: readonly number[]])[]
  readonly after_unshard: GoldenApi['before_unshard']
  readonly after_reshard: GoldenApi['before_unshard']
  readonly modulelist: { readonly error: string }
  readonly shard_placement_fn: Divided
  readonly mp: { readonly out: string; readonly grad: Readonly<Record<string, string>>; readonly grads: Divided }
}

const recorded = goldenSet('fsdp2')

function localOf(value: Divided[string] | undefined): RecordedTensor | null {
  if (value === null || value === undefined) return null
  if ('DTensor' in value) return value.DTensor.local
  return 'local' in value ? value.local : value
}

function closeAll(actual: ByName | undefined, expected: Divided, where: string): void {
  const names = Object.keys(expected).filter((name) => !/running|num_batches/.test(name))
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

    test('small all-reduces are right when collectives are not compared any more, after the first thousand', () => {
      for (const { unchecked } of ranks) {
        expect(unchecked.sequence).toBeGreaterThan(1024)
        expect(unchecked.wrong).toEqual([0, 0, 0])
      }
    })

    const runs = [...recorded].filter(([key, golden]) => golden.world === size && key.includes('_reshard='))

    test.each(runs)('%s: rows, losses, gradients and collectives are those of PyTorch', (key, golden) => {
      const name = key.slice('fsdp2_'.length, -'_w2'.length)
      ;(golden.ranks as unknown as readonly Golden[]).forEach((theirs, rank) => {
        const ours = ranks[rank]?.trained[name]
        expect(ours?.text.split('\n')[0]).toBe(theirs.str.split('\n')[0])
        expect(ours?.text.split('(')[0]).toBe(theirs.class)
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

    /** Compares with PyTorch's recording, which is of two ranks. */
    function compareApi(fn: (theirs: GoldenApi, ours: Results['api'], rank: number) => void): void {
      const theirRanks = (recorded.get('fsdp2_api_w2')?.ranks ?? []) as unknown as readonly GoldenApi[]
      expect(theirRanks).toHaveLength(2)
      if (size !== 2) return
      theirRanks.forEach((theirs, rank) => {
        const ours = ranks[rank]?.api
        expect(ours).toBeDefined()
        if (ours !== undefined) fn(theirs, ours, rank)
      })
    }

    test('clipGradNorm_ uses the norm over all ranks', () => {
      expect(new Set(ranks.map(({ api }) => api.clip)).size).toBe(1)
      compareApi((theirs, ours) => {
        close([ours.clip], [theirs.clip])
        closeAll(ours.clipped, theirs.grads_after, 'clipped')
      })
    })

    test('without synchronization gradients are kept, and join the next reduction', () => {
      for (const { api } of ranks) {
        expect(new Set(Object.values(api.unsynced))).toEqual(new Set([true]))
        const [apart, together] = api.accumulated
        for (const [name, grad] of Object.entries(together)) close(apart[name]?.data, grad?.data, name)
      }
      compareApi((theirs, ours) => {
        expect(ours.unsynced).toEqual(theirs.nosync_grads_none)
        closeAll(ours.accumulated[0], theirs.accumulated, 'accumulated')
      })
    })

    test('unshard shows whole parameters, reshard the rows', () => {
      for (const { api } of ranks) {
        const [before, whole, after] = api.shapes
        expect(whole?.map(([, shape]) => shape)).toEqual([[7, 5], [7], [3, 7], [3]])
        expect(after).toEqual(before)
      }
      expect(ranks.map(({ api }) => api.shapes[0]?.[0]?.[1][0])).toEqual(size === 2 ? [4, 3] : [2, 2, 2, 1])
      compareApi((theirs, ours) => {
        // A DTensor shows the whole shape; ours shows that of the rows.
        const kinds = [theirs.before_unshard, theirs.after_unshard, theirs.after_reshard].map((list) => list.map(([, type]) => type))
        expect(kinds.map(([first]) => first)).toEqual(['DTensor', 'Parameter', 'DTensor'])
        expect(ours.shapes[1]).toEqual(theirs.after_unshard.map(([name, , shape]) => [name, shape]))
        for (const [at, list] of [theirs.before_unshard, theirs.after_reshard].entries())
          expect(ours.shapes[at === 0 ? 0 : 2]?.map(([name]) => name)).toEqual(list.map(([name]) => name))
      })
    })

    test('mixed precision computes in bfloat16, with float32 gradients', () => {
      for (const { api } of ranks) {
        expect(new Set(api.mixed.slice(1))).toEqual(new Set(['float32']))
        expect(api.mixed[0]).toBe('bfloat16')
      }
      compareApi((theirs, ours) => {
        expect(`torch.${ours.mixed[0]}`).toBe(theirs.mp.out)
        expect(ours.mixed.slice(1).map((dtype) => `torch.${dtype}`)).toEqual(Object.values(theirs.mp.grad))
        for (const [name, grad] of Object.entries(ours.mixedGrads)) {
          const expected = localOf(theirs.mp.grads[name])
          expect(grad?.shape).toEqual(expected?.shape)
          // Halves: the order of sums shows in the last of their 8 bits.
          grad?.data.forEach((value, i) => expect(Math.abs(value - (expected?.data[i] ?? NaN)), name).toBeLessThan(2e-3))
        }
      })
    })

    test('the tree of modules marks those that are divided', () => {
      for (const { api } of ranks) expect(api.tree.tree.match(/ FULLY SHARDED$/gm)).toHaveLength(4)
      compareApi((theirs, ours) => {
        // PyTorch looks for the state of the other FSDP, and marks nothing.
        expect(theirs.tree[1]).toEqual({})
        expect(ours.tree.tree.replaceAll(' FULLY SHARDED', '')).toBe(theirs.tree[0])
      })
    })

    test('shardPlacementFn divides along other dimensions, which changes nothing but what a rank holds', () => {
      for (const [rank, { placements }] of ranks.entries()) {
        const { rows, columns, negative } = placements
        close(columns.losses, rows.losses)
        for (const [name, tensor] of Object.entries(rows.full)) {
          close(columns.full[name]?.data, tensor?.data, name)
          close(columns.grads[name]?.data, rows.grads[name]?.data, name)
          close(columns.moments[name]?.data, rows.moments[name]?.data, name)
        }
        expect(Object.values(columns.moments).map((moment) => moment?.shape)).toEqual([[8, 4, 3, 3], [8], [4, 8], [4]])
        expect(rows.parts['conv.weight']?.shape).toEqual([8 / size, 4, 3, 3])
        expect(columns.parts['conv.weight']?.shape).toEqual([8, 4 / size, 3, 3])
        expect(columns.parts['head.weight']?.shape).toEqual([4, 8 / size])
        expect(columns.parts['head.bias']?.shape).toEqual([4 / size])
        const own = columns.full['head.weight']?.data.filter((_, i) => Math.floor((i % 8) / (8 / size)) === rank)
        expect(columns.parts['head.weight']?.data).toEqual(own)
        expect(negative['conv.weight']?.shape).toEqual([8, 4 / size, 3, 3])
      }
      compareApi((theirs, _ours, rank) => closeAll(ranks[rank]?.placements.mlp, theirs.shard_placement_fn, 'placed'))
    })

    test('shardPlacementFn must return a dimension that divides evenly', () => {
      for (const { placements } of ranks) {
        expect(placements.uneven).toMatch(
          new RegExp(`UnsupportedError: FSDP does not support uneven sharding on dim 1: \\[7, 5\\] \\(world size: ${size}\\).*'net\\.0\\.weight'`),
        )
        expect(placements.outside).toMatch(/ArgumentError: .*from -2 to 1, or null, got 2 for 'net\.0\.weight' of shape \[7, 5\]/)
        expect(placements.notANumber).toMatch(/ArgumentError: .*got 'rows'/)
      }
    })

    test('loads state dicts of others; refuses lists and a second call', () => {
      for (const { api } of ranks) {
        expect(api.loaded[1]).toEqual(api.loaded[0])
        expect(api.list).toMatch(/fully_shard does not support containers that do not implement forward: ModuleList/)
        expect(api.twice).toMatch(/this FSDPMlp is divided already/)
      }
      compareApi((theirs, ours) => expect(ours.list).toContain(theirs.modulelist.error.split('(')[0]))
    })
  })
