// What FullyShardedDataParallel refuses, and cases at the edges, against PyTorch's.
import { beforeAll, describe, expect, test } from 'vitest'
import { close, goldenSet } from '../goldens.ts'
import type { RecordedTensor } from '../goldens.ts'
import type { World } from '../worlds.ts'

type Named = readonly (readonly [string, RecordedTensor | null])[]
type ByName = Readonly<Record<string, RecordedTensor>>

interface Found {
  readonly refuses: Readonly<Record<string, string>>
  readonly fakeParameters: readonly {
    readonly path: string
    readonly names: readonly string[]
    readonly shard: unknown
    readonly local: RecordedTensor
  }[]
  readonly edges: {
    readonly no_params: readonly [count: number, output: readonly number[]]
    readonly two_backwards_accumulate: Named
    readonly eval_no_grad: boolean
    readonly apply: ByName
    readonly synced: ByName
    readonly orig_data_write: RecordedTensor
  }
}

interface Golden extends Readonly<Record<string, unknown>> {
  readonly no_params: readonly [parameters: readonly unknown[], output: string]
  readonly two_backwards_accumulate: Named
  readonly apply: ByName
  readonly orig_data_write: RecordedTensor
  readonly meta_init: readonly {
    readonly unit: string
    readonly fqns: readonly string[]
    readonly shard_param_infos: readonly (readonly unknown[])[]
    readonly local_shard: RecordedTensor
  }[]
}

const recorded = goldenSet('fsdp-runtime')

/** What PyTorch says, and what ours says in its place where the words differ. */
const TEXTS: Readonly<Record<string, readonly [theirs: RegExp, ours: RegExp | null]>> = {
  hybrid_no_mesh: [
    /^Expected process_group to be passed in/,
    /HYBRID_SHARD needs a deviceMesh of two dimensions, or processGroup: \[shard, replicas\]/,
  ],
  bad_policy: [/not callable/, /autoWrapPolicy must be a function/],
  mixed_dtypes: [
    /^Must flatten tensors with uniform dtype but got torch.float64 and torch.float32/,
    /Must flatten tensors with uniform dtype but got float64 and float32/,
  ],
  int_param: [/^Cannot flatten integer dtype tensors/, null],
  child_first_then_root: [/^Non-root FSDP instance's `_is_root` should not have been set yet/, null],
  scalar_param: [/^FSDP doesn't support scalar parameters. Change w to a 1D tensor/, null],
}

export const fsdpErrorsSuite = ({ size, results }: World): void =>
  void describe('fsdpErrors', () => {
    let ranks: readonly Found[] = []
    let theirs: readonly Golden[] = []
    beforeAll(() => {
      ranks = results<Found>('fsdpErrors')
      theirs = (recorded.get(`errors_w${size}`)?.ranks ?? []) as readonly Golden[]
    })

    test.each(Object.entries(TEXTS))('%s is refused', (name, [pattern, words]) => {
      expect(theirs).toHaveLength(size)
      ranks.forEach(({ refuses }, rank) => {
        const error = (theirs[rank]?.[name] as { readonly error: string } | undefined)?.error ?? ''
        expect(error).toMatch(pattern)
        if (words === null) expect(refuses[name]).toContain(error)
        else expect(refuses[name]).toMatch(words)
      })
    })

    test('noSync of a child is allowed', () => {
      ranks.forEach(({ refuses }, rank) => {
        expect(theirs[rank]?.['no_sync_child']).toBe('ok')
        expect(refuses['no_sync_child']).toBe('no error')
      })
    })

    test('parameters that are fake are made by paramInitFn, when their unit is', () => {
      ranks.forEach(({ fakeParameters }, rank) => {
        const expected = theirs[rank]?.meta_init ?? []
        expect(fakeParameters.map(({ path, names }) => [path, names])).toEqual(expected.map(({ unit, fqns }) => [unit, fqns]))
        fakeParameters.forEach(({ shard, local }, i) => {
          expect((shard as readonly Readonly<Record<string, unknown>>[]).map((info) => Object.values(info))).toEqual(expected[i]?.shard_param_infos)
          close(local.data, expected[i]?.local_shard.data)
        })
      })
    })

    test("syncModuleStates takes rank 0's weights, which PyTorch refuses without an accelerator", () => {
      ranks.forEach(({ edges }, rank) => {
        for (const name of ['sync_module_states_cpu', 'sync_module_states_values'])
          expect((theirs[rank]?.[name] as { readonly error: string } | undefined)?.error).toContain('which requires them to be on GPU')
        expect(edges.synced).toEqual(ranks[0]?.edges.synced)
      })
      const [{ edges } = { edges: null }] = ranks
      // Biases that `apply` in PyTorch's recording left alone are the first model's.
      close(edges?.synced['net.0.bias']?.data, theirs[0]?.apply['net.0.bias']?.data)
    })

    test('a model without parameters, two backwards, a step after an evaluation, apply, and writing to a parameter', () => {
      ranks.forEach(({ edges }, rank) => {
        const expected = theirs[rank]
        expect(edges.no_params).toEqual([
          expected?.no_params[0].length,
          JSON.parse((expected?.no_params[1] ?? '').replace(/^tensor\((.*)\)$/, '$1').replaceAll('.', '')),
        ])
        expected?.two_backwards_accumulate.forEach(([name, tensor], i) => {
          expect(edges.two_backwards_accumulate[i]?.[0]).toBe(name)
          close(edges.two_backwards_accumulate[i]?.[1]?.data, tensor?.data)
        })
        expect(edges.eval_no_grad).toBe(expected?.['eval_no_grad'])
        expect(Object.keys(edges.apply)).toEqual(Object.keys(expected?.apply ?? {}))
        for (const [name, tensor] of Object.entries(expected?.apply ?? {})) close(edges.apply[name]?.data, tensor.data)
        expect(edges.orig_data_write.shape).toEqual(expected?.orig_data_write.shape)
        close(edges.orig_data_write.data, expected?.orig_data_write.data)
      })
    })
  })
