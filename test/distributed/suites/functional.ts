// Functional collectives against PyTorch's: values, the graphs that tracing records, derivatives, and compilation.
import { beforeAll, describe, expect, test } from 'vitest'
import { close, golden } from '../goldens.ts'
import type { RecordedTensor } from '../goldens.ts'
import type { World } from '../worlds.ts'

interface Found {
  readonly traced: Readonly<Record<string, { readonly value: RecordedTensor; readonly again: RecordedTensor; readonly graph: string }>>
  readonly differentiated: Readonly<Record<string, { readonly value: RecordedTensor; readonly grad: RecordedTensor }>>
  readonly compiled: Readonly<
    Record<
      'inPlace' | 'functional',
      {
        readonly graphs: readonly string[]
        readonly value: RecordedTensor
        readonly argument: RecordedTensor
        readonly kernels: RecordedTensor
      }
    >
  >
  readonly unused: number
}

interface Golden extends Readonly<Record<string, unknown>> {
  readonly dynamo: { readonly graphs: readonly string[]; readonly values: readonly RecordedTensor[] }
  readonly nn_functional: {
    readonly all_reduce: readonly [value: RecordedTensor, grad: RecordedTensor]
    readonly all_gather: readonly [values: readonly RecordedTensor[], grad: RecordedTensor]
  }
}

/** The collectives in a printed graph, with their arguments. */
const collectivesIn = (graph: string): readonly string[] =>
  [...graph.matchAll(/target=torch\.ops\._c10d_functional\.(\w+)(?:\.default)?\]\(args = (.*), kwargs/g)].map(([, name, args]) => `${name}${args}`)

export const functionalSuite = ({ size, results }: World): void =>
  void describe('functional', () => {
    let ranks: readonly Found[] = []
    let theirs: readonly Golden[] = []
    beforeAll(() => {
      ranks = results<Found>('functional')
      theirs = golden<Golden>(`functional_collectives_w${size}`) ?? []
      expect(theirs).toHaveLength(size)
    })

    test.each([
      'all_reduce',
      'all_reduce_avg',
      'all_gather_tensor0',
      'all_gather_tensor1',
      'reduce_scatter_tensor',
      'all_to_all_single',
      'broadcast',
      'two',
    ])('%s has the values and the graph of PyTorch', (name) => {
      ranks.forEach(({ traced }, rank) => {
        const [ours, expected] = [traced[name], theirs[rank]?.[name] as { readonly value: RecordedTensor; readonly graph: string }]
        expect(ours?.value.shape).toEqual(expected.value.shape)
        close(ours?.value.data, expected.value.data)
        expect(ours?.again).toEqual(ours?.value)
        // Other operators differ: what PyTorch calls aten.split and getitem is a slice for each part here.
        expect(collectivesIn(expected.graph).length).toBeGreaterThan(1)
        expect(collectivesIn(ours?.graph ?? '')).toEqual(collectivesIn(expected.graph))
      })
    })

    test('derivatives are those of PyTorch', () => {
      ranks.forEach(({ differentiated }, rank) => {
        const expected = theirs[rank]
        // That of all_reduce is missing there.
        expect(expected?.['all_reduce_autograd']).toBeNull()
        for (const name of ['all_gather_tensor_autograd', 'reduce_scatter_tensor_autograd', 'all_to_all_single_autograd'])
          close(differentiated[name]?.grad.data, (expected?.[name] as RecordedTensor).data, name)
        const { all_reduce: reduced, all_gather: gathered } = expected?.nn_functional ?? {}
        close(differentiated['all_reduce']?.value.data, reduced?.[0].data)
        close(differentiated['all_reduce']?.grad.data, reduced?.[1].data)
        close(
          differentiated['all_gather']?.value.data,
          gathered?.[0].flatMap(({ data }) => data),
        )
        close(differentiated['all_gather']?.grad.data, gathered?.[1].data)
        // A permutation needs splits of its own, which the recording left out.
        expect(expected?.['permute_tensor']).toHaveProperty('error')
      })
    })

    test('compilation captures collectives in one graph, in-place ones as a functional one and a copy', () => {
      ranks.forEach(({ compiled }, rank) => {
        const { graphs, values } = theirs[rank]?.dynamo ?? { graphs: [], values: [] }
        for (const [at, name] of (['inPlace', 'functional'] as const).entries()) {
          const ours = compiled[name]
          close(ours.value.data, values[at]?.data)
          close(ours.kernels.data, values[at]?.data)
          expect(ours.graphs).toHaveLength(1)
          // Dynamo names the result after the variable of a function inside PyTorch: so only what is called is compared.
          const calls = (graph: string): readonly string[] => collectivesIn(graph).map((text) => text.replace(/\(.*$/, ''))
          expect(calls(ours.graphs[0] ?? '')).toEqual(calls(graphs[at] ?? ''))
          expect(/\.copy\]/.test(ours.graphs[0] ?? '')).toBe(/target=copy_\]/.test(graphs[at] ?? ''))
        }
        // What was written to is the caller's tensor.
        close(
          compiled.inPlace.argument.data.map((value) => 2 * value),
          values[0]?.data,
        )
      })
    })

    test('a collective whose result nothing uses runs at each call', () => {
      for (const { unused } of ranks) expect(unused).toBe(2)
    })
  })
