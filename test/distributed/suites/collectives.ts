// Collectives against PyTorch's (gloo), on threads and on MPI.
import { beforeAll, describe, expect, test } from 'vitest'
import { uniform } from '../../helpers/deterministic.ts'
import { close, golden } from '../goldens.ts'
import type { World } from '../worlds.ts'

interface Value {
  readonly shape: readonly number[]
  readonly data: readonly (number | boolean)[]
}
type Golden = Readonly<Record<string, Value | readonly Value[] | string | { readonly error: string }>>
type Found = Readonly<Record<string, Readonly<Record<string, unknown>>>>

const flat = (value: unknown): number[] => (Array.isArray(value) ? value.flat(Infinity) : []).map(Number)
const splitsOutput = (value: unknown): unknown => (typeof value === 'object' && value !== null && 'out' in value ? value.out : null)
const dataOf = (value: unknown): number[] =>
  Array.isArray(value) ? value.flatMap(dataOf) : typeof value === 'object' && value !== null && 'data' in value ? flat(value.data) : []

export const collectivesSuite = ({ size, results }: World): void =>
  void describe('collectives', () => {
    let ranks: readonly Found[] = []
    let expected: readonly Golden[] = []
    const sum = (pick: (rank: number) => number): number => Array.from({ length: size }, (_, i) => pick(i)).reduce((a, b) => a + b, 0)
    beforeAll(() => {
      ranks = results<Found>('collectives')
      expected = golden<Golden>(`collectives_w${size}`) ?? []
    })

    test("all_reduce of every dtype and operator is PyTorch's, or refused as there", () => {
      let compared = 0
      ranks.forEach((found, rank) => {
        for (const [key, ours] of Object.entries(found['reductions'] ?? {})) {
          const theirs = expected[rank]?.[key]
          if (theirs === undefined) continue
          compared++
          if (typeof theirs === 'object' && 'error' in theirs) {
            expect(ours, key).toHaveProperty('error')
            if (/B(AND|OR|XOR)/.test(key)) expect(JSON.stringify(ours)).toContain(theirs.error)
          } else if (key.includes('float16')) {
            // gloo rounds after each rank, we once.
            const step = key.includes('bfloat') ? 2 ** -7 : 2 ** -10
            dataOf(theirs).forEach((value, i) =>
              expect(Math.abs((flat(ours)[i] ?? NaN) - value), key).toBeLessThanOrEqual(Math.max(step * Math.abs(value), step / 4)),
            )
          } else close(flat(ours), dataOf(theirs))
        }
      })
      expect(compared).toBe(8 * 8 * size)
    })

    test('gathers, scatters, broadcasts and all-to-alls move what PyTorch moves', () => {
      ranks.forEach((found, rank) => {
        for (const [key, ours] of Object.entries(found['moves'] ?? {})) {
          if (key === 'stacked') {
            // gloo refuses an output of one more dimension; ours takes both.
            expect(expected[rank]?.['all_gather_into_tensor_stacked']).toHaveProperty('error')
            close(flat(ours), dataOf(expected[rank]?.['all_gather_into_tensor']))
          } else if (ours === null || ours === 'undefined') expect(expected[rank]?.[key]).toBe(ours)
          else if (key === 'all_to_all_single_splits') close(flat(ours), dataOf(splitsOutput(expected[rank]?.[key])))
          else close(flat(ours), dataOf(expected[rank]?.[key]))
        }
      })
    })

    test('messages arrive by sender and by tag, in any order', () => {
      ranks.forEach((found, rank) => {
        const before = (rank + size - 1) % size
        close(flat(found['messages']?.['ring']), dataOf(expected[rank]?.['ring_batch_isend_irecv']))
        expect(found['messages']?.['source']).toBe(before)
      })
      const [sender, data] = (ranks[1]?.['messages']?.['fromAny'] ?? []) as readonly [number, unknown]
      const [received, source] = (expected[1]?.['send_recv_any'] ?? []) as unknown as readonly [Value, number]
      expect(expected[0]?.['send_recv_any']).toBe('sent')
      expect(sender).toBe(source)
      close(flat(data), dataOf(received))
      expect(ranks[1]?.['messages']?.['byTag']).toEqual([[2], [1]])
    })

    test('objects travel as JSON', () => {
      for (const found of ranks) {
        const { all, fromOne, noJson, broadcast, scatterLength } = found['objects'] ?? {}
        expect(broadcast).toEqual(expected[0]?.['broadcast_object_list'])
        expect(scatterLength).toMatch(/ArgumentError: scatterObject: values must be a list of \d values, one for each rank, got 1/)
        expect(all).toEqual(Array.from({ length: size }, (_, rank) => ({ rank, x: Array.from({ length: rank }, () => 1) })))
        expect(fromOne).toEqual({ a: [1, 'ü'] })
        expect(noJson).toMatch(/ArgumentError: allGatherObject: JSON has no undefined/)
      }
    })

    test('gathered and scattered objects are those of PyTorch', () => {
      ranks.forEach((found, rank) => {
        const theirs = expected[rank]?.['all_gather_object'] as unknown as readonly { readonly rank: number; readonly x: readonly number[] }[]
        const ours = found['objects']?.['all'] as readonly { readonly rank: number; readonly x: readonly number[] }[]
        expect(ours.map((value) => [value.rank, value.x.length])).toEqual(theirs.map((value) => [value.rank, value.x.length]))
        expect([found['objects']?.['scattered']]).toEqual(expected[rank]?.['scatter_object_list'])
      })
    })

    test('what another rank sends is checked like a file', () => {
      const messages = ranks.map((found) => [found['objects']?.['wrong'], found['objects']?.['wrongLength'], found['objects']?.['length']].flat())
      for (const [rank, said] of messages.entries()) {
        if (rank === 1) continue
        const expected = [
          'the value of rank 1 is not JSON',
          "the value of rank 1 has the key 'a' twice in one object",
          'the value of rank 1 is nested more than 200 deep',
          "b[0] has the key '__proto__'",
          'lengthOfRank[0] must be an integer from 0 to 268435456, got -1',
          'must be an integer from 0 to 268435456, got 536870912',
        ]
        expect(said).toHaveLength(expected.length)
        said.forEach((text) => expect(text).toMatch(/^ArgumentError: broadcastObject: /))
        expected.forEach((text, i) => expect(said[i]).toContain(text))
      }
    })

    test('groups have ranks of their own, and null for those outside', () => {
      ranks.forEach((found, rank) => {
        const { results, twice, far } = found['groups'] ?? {}
        const [pair, single, all, outer] = results as readonly ([number[], number, number, number[]] | null)[]
        expect(pair === null).toBe(rank > 1)
        if (pair !== null && pair !== undefined) {
          expect(pair.slice(1)).toEqual([rank, 2, [0, 1]])
          close(pair[0], dataOf(golden<Golden>('collectives_w2')?.[rank]?.['new_group']).slice(0, 6))
        }
        // A rank outside has null here, and -1 there.
        const theirs = expected[rank]?.['new_group'] as unknown as readonly unknown[]
        if (outer === null || outer === undefined) expect(theirs).toEqual([-1, -1])
        else {
          close(outer[0], dataOf(theirs[0]))
          expect(outer.slice(1)).toEqual(theirs.slice(1))
        }
        expect(single?.slice(1) ?? null).toEqual(rank === 1 ? [0, 1, [1]] : null)
        expect(all?.slice(1)).toEqual([rank, size, Array.from({ length: size }, (_, i) => i)])
        for (const text of [twice, far]) expect(text).toMatch(/newGroup: ranks must be different integers/)
      })
    })

    test('works may be waited for in any order, and awaited; groups make progress beside each other', () => {
      ranks.forEach((found, rank) => {
        const { x, y, z, completed } = found['asynchronous'] ?? {}
        const reference = (op: string): number[] => dataOf(expected[rank]?.[`all_reduce/float32/${op}`])
        close(flat(x), dataOf((expected[rank]?.['async'] as readonly Value[] | undefined)?.[0]))
        close(flat(y), reference('MAX'))
        close(flat(z), reference('AVG'))
        expect(completed).toBe(true)
        for (const crossed of found['crossed'] as unknown as readonly unknown[]) close(flat(crossed), reference('SUM'))
      })
    })

    test('large all-reduces are right in every element, and do not mix with what is started behind them', () => {
      for (const found of ranks) expect(found['large']).toEqual([0, 0, 0])
    })

    test('small all-reduces are right when many are under way in two groups, in whatever order they are waited for', () => {
      for (const found of ranks) expect(found['small']).toEqual([])
    })

    test('columns, large, empty and 0-dimensional tensors are reduced; parameters stay parameters', () => {
      const total = sum((rank) => rank + 1)
      ranks.forEach((found, rank) => {
        const { columns, big, empty, scalar, version } = found['layouts'] ?? {}
        expect(expected[rank]?.['noncontiguous']).toBe('ok')
        close(flat((columns as number[][]).map(([first]) => first)), dataOf(expected[rank]?.['all_reduce/float32/SUM']))
        expect((columns as number[][]).every(([, second]) => second === 0)).toBe(true)
        expect([big, empty, scalar, version]).toEqual([[[300_000], true, total], [0], total, true])
      })
    })

    test('a collective counts as a write for autograd', () => {
      for (const found of ranks) expect(found['raisesVersions']).toMatch(/AutogradError: .*modified/)
    })

    test('a mismatch is an error on every rank, as with the debug level DETAIL of PyTorch, after which the group works', () => {
      const shapes = golden<{ readonly shape: { readonly error: string } }>(`detail_mismatch_w${size}`)
      const kinds = golden<{ readonly error: string }>('detail_mismatch_op_w4')
      ranks.forEach((found, rank) => {
        // There each rank says what it and one other runs; here all say who runs what.
        expect(shapes?.[rank]?.shape.error).toMatch(/Collectives differ in the following aspects: .*Tensor shapes: \dvs \d/)
        expect(found['mismatch']?.['error']).toMatch(
          /^CollectiveMismatchError: .*rank 0 calls allreduce\(sum, float32\[4\]\); ranks? .* calls? allreduce\(sum, float32\[5\]\)/,
        )
        if (size === 4) expect(kinds?.[rank]?.error).toMatch(/Op type: (ALLREDUCEvs BROADCAST|BROADCASTvs ALLREDUCE)/)
        expect(found['mismatch']?.['kinds']).toMatch(
          /^CollectiveMismatchError: .*rank 0 calls allreduce\(sum, float32\[4\]\); ranks? .* calls? broadcast\(float32\[4\], root 0\)/,
        )
        expect(found['mismatch']?.['after']).toEqual([size, size])
      })
    })

    test('bad arguments are refused before anything is sent', () => {
      for (const found of ranks) {
        const refused = found['refuses'] ?? {}
        // PyTorch's texts name gloo's functions and C++ types, so only that there is an error is compared, and what ours says.
        const refusals: Readonly<Record<string, readonly [theirs: string, ours: RegExp]>> = {
          size: ['err_all_gather_size', /ShapeError: allGatherIntoTensor: input has shape \[6\], so output must have shape \[\d+\]/],
          dtype: ['err_all_gather_dtype', /output is float64 and input is float32/],
          scatterSize: ['err_reduce_scatter_size', /ShapeError: reduceScatterTensor/],
          noTensor: ['err_not_tensor', /allReduce: tensor must be a Tensor/],
          root: ['err_bad_src', /broadcast: src must be one of the group's ranks/],
          self: ['err_send_self', /dst must be another rank/],
          listLength: ['err_list_len', /outputs must be a list of \d tensors/],
        }
        for (const [name, [recording, text]] of Object.entries(refusals)) {
          expect(expected[0]?.[recording], recording).toHaveProperty('error')
          expect(refused[name], name).toMatch(text)
        }
        expect(refused['barrier'] === 'no error').toBe(expected[0]?.['monitored_barrier'] === 'ok')
        // With gloo there is no bitwise operator among the names that it lists.
        const names = expected[0]?.['reduce_op_names'] as unknown as readonly string[]
        expect(refused['ops']).toEqual([...names.map((name) => name.replace('RedOpType.', '').toLowerCase()), 'band', 'bor', 'bxor'])
        expect(refused['op']).toMatch(/op must be one of sum, avg.*'mean'/)
        expect(refused['option']).toMatch(/unknown option 'async'.*asyncOp/)
        expect(refused['splits']).toMatch(/outputSplits must be \d sizes that add up to dimension 0|inputSplits must be/)
        expect(refused['divides']).toMatch(/does not divide by/)
      }
    })

    test('functional collectives have the values and gradients of their definitions', () => {
      const all = ranks.map((found) => found['functional'] ?? {})
      const value = (name: string, rank: number): number[] => flat((all[rank]?.[name] as { value: unknown } | undefined)?.value)
      const grad = (name: string, rank: number): number[] => flat((all[rank]?.[name] as { grad: unknown } | undefined)?.grad)
      for (let rank = 1; rank < size; rank++) {
        for (const name of ['allReduce', 'average', 'allGather', 'allGather1', 'broadcast']) expect(value(name, rank)).toEqual(value(name, 0))
        expect(grad('allReduce', rank)).toEqual(grad('allReduce', 0))
      }
      close(
        value('average', 0).map((v) => v * size),
        value('allReduce', 0),
      )
      // Derivatives: the inner product of an output's cotangent with the output is that of the input's gradient with the input, over all ranks (all are linear).
      for (const name of ['allReduce', 'average', 'allGather', 'allGather1', 'reduceScatter1', 'allToAll']) {
        const outer = sum((rank) => inner(value(name, rank), uniform(value(name, rank).length, 31 + rank)))
        const input = sum((rank) => inner(grad(name, rank), uniform(6 * size, 11 + rank)))
        expect(Math.abs(outer - input), name).toBeLessThan(1e-4)
      }
    })
  })

const inner = (a: readonly number[], b: ArrayLike<number>): number => a.reduce((total, value, i) => total + value * (b[i] ?? 0), 0)
