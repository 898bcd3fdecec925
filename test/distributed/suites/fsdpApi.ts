// What FullyShardedDataParallel offers besides training, against PyTorch's: noSync, summonFullParams, clipping, state dicts, optimizer states, mixed precision.
import { beforeAll, describe, expect, test } from 'vitest'
import { close, goldenSet } from '../goldens.ts'
import type { RecordedTensor } from '../goldens.ts'
import type { World } from '../worlds.ts'

type Style = 'flat' | 'orig'
type Named = readonly (readonly [string, RecordedTensor | null])[]
type ByName = Readonly<Record<string, RecordedTensor>>

interface SummonStep {
  readonly seen: readonly (readonly unknown[])[]
  readonly after_local: Named
  readonly after_full: ByName | null
}

interface Saved {
  readonly keys: readonly string[]
  readonly values: Readonly<Record<string, unknown>>
  readonly load: string
  readonly loadedEquals: boolean
}

type States = Readonly<Record<string, Readonly<Record<string, unknown>>>>

interface Mixed {
  readonly seen: unknown
  readonly losses: readonly number[]
  readonly events: readonly (readonly [name: string, description: string])[]
  readonly dtypes: readonly string[]
  readonly final: ByName
}

interface Api {
  readonly noSync: Readonly<
    Record<string, Readonly<Record<Style, { readonly events: readonly string[]; readonly inside: unknown; readonly grads: Named }>>>
  >
  readonly droppedNoSync: Readonly<Record<Style, readonly [Named, Named]>>
  readonly summoned: Readonly<Record<string, Readonly<Record<Style, Readonly<Record<string, never>>>>>>
  readonly clipped: Readonly<Record<string, Readonly<Record<Style, Readonly<Record<string, never>>>>>>
  readonly stateDicts: Readonly<Record<string, Readonly<Record<Style, Readonly<Record<string, never>>>>>>
  readonly optimizerStates: Readonly<Record<string, Readonly<Record<Style, Readonly<Record<'adam' | 'sgd', Readonly<Record<string, never>>>>>>>>
  readonly gradScaler: { readonly steps: readonly Readonly<Record<string, unknown>>[]; readonly state: unknown; readonly final: ByName }
  readonly unused: Readonly<Record<string, Named>>
  readonly edges: Readonly<Record<string, never>>
  readonly mixed: Readonly<Record<string, Mixed>>
  readonly notCast: string
}

const sets = ['fsdp-runtime', 'fsdp-summon', 'fsdp-state', 'fsdp-optim'].map(goldenSet)

/** PyTorch's recording of one rank; null if there is none for that number of ranks. */
function recordedRank(name: string, rank: number): Readonly<Record<string, never>> | null {
  for (const set of sets) {
    const found = set.get(name)?.ranks[rank]
    if (found !== undefined) return found
  }
  return null
}

/** How many recordings a test has compared: a test that found none would prove nothing. */
let compared = 0

/** `exp_avg` is `expAvg`, `bn.running_mean` is `bn.runningMean`. */
const camel = (name: string): string =>
  name.replaceAll(/_(?=[a-z]+)([a-z])/g, (_, letter: string) => letter.toUpperCase()).replace(/^FlatParam/, '_flat_param')
const ownName = (name: string): string => (name.includes('_flat_param') ? name : camel(name))

function closeTensor(actual: RecordedTensor | null | undefined, expected: RecordedTensor | null, where: string): void {
  if (expected === null) return expect(actual ?? null, where).toBeNull()
  expect(actual?.shape, where).toEqual(expected.shape)
  close(actual?.data, expected.data, where)
}

function closeNamed(actual: Named | undefined, expected: Named, where: string): void {
  expect(
    actual?.map(([name]) => name),
    where,
  ).toEqual(expected.map(([name]) => name))
  expected.forEach(([name, tensor], i) => closeTensor(actual?.[i]?.[1], tensor, `${where} ${name}`))
}

function closeByName(actual: ByName | null | undefined, expected: ByName): void {
  for (const [name, tensor] of Object.entries(actual ?? {})) {
    const theirs = Object.entries(expected).find(([key]) => ownName(key) === name)?.[1]
    if (theirs !== undefined) closeTensor(tensor, theirs, name)
  }
  for (const name of Object.keys(expected)) if (!/running|num_batches/.test(name)) expect(Object.keys(actual ?? {})).toContain(ownName(name))
}

/** A tensor, or a sharded one, of a state dict. */
function closeValue(actual: unknown, expected: unknown, where: string): void {
  const [ours, theirs] = [actual as Readonly<Record<string, never>>, expected as Readonly<Record<string, never>>]
  if (typeof expected !== 'object' || expected === null) return expect(actual, where).toEqual(expected)
  const shards = theirs['ShardedTensor'] as unknown as Readonly<Record<string, never>> | undefined
  if (shards === undefined) {
    const { shape, data } = expected as RecordedTensor
    // A step count is a number here, and a tensor of no dimensions there.
    if (shape.length === 0 && typeof actual === 'number') return close([actual], data)
    return closeTensor(actual as RecordedTensor, expected as RecordedTensor, where)
  }
  expect(ours['size'], where).toEqual(shards['size'])
  expect(ours['metadata'], where).toEqual(shards['metadata'])
  const [own, local] = [ours['local'] as unknown as readonly (readonly unknown[])[], shards['local'] as unknown as readonly (readonly unknown[])[]]
  expect(own.map(([offsets, sizes]) => [offsets, sizes])).toEqual(local.map(([offsets, sizes]) => [offsets, sizes]))
  local.forEach(([, , tensor], i) => closeTensor(own[i]?.[2] as RecordedTensor, tensor as RecordedTensor, where))
}

function closeStates(actual: States | undefined, expected: States, where: string): void {
  expect(Object.keys(actual ?? {}).toSorted(), where).toEqual(Object.keys(expected).toSorted())
  for (const [name, values] of Object.entries(expected)) {
    const own = actual?.[name] ?? {}
    expect(Object.keys(own).toSorted(), `${where} ${name}`).toEqual(Object.keys(values).map(camel).toSorted())
    for (const [key, value] of Object.entries(values)) closeValue(own[camel(key)], value, `${where} ${name} ${key}`)
  }
}

/** The text of an error that PyTorch threw. */
const errorOf = (value: unknown): string =>
  typeof value === 'object' && value !== null && 'error' in value && typeof value.error === 'string' ? value.error : 'no error was recorded'

const STYLES: readonly Style[] = ['flat', 'orig']

export const fsdpApiSuite = ({ size, results }: World): void =>
  void describe('fsdpApi', () => {
    let ranks: readonly Api[] = []
    beforeAll(() => {
      ranks = results<Api>('fsdpApi')
    })

    /** Compares all recordings of a name on all ranks. */
    function compare(name: string, fn: (theirs: Readonly<Record<string, never>>, ours: Api, rank: number) => void): void {
      ranks.forEach((ours, rank) => {
        const theirs = recordedRank(`${name}_w${size}`, rank)
        if (theirs === null) return
        compared++
        fn(theirs, ours, rank)
      })
    }
    const atLeast = (count: number, fn: () => void): void => {
      compared = 0
      fn()
      expect(compared).toBeGreaterThanOrEqual(count * size)
    }

    test('noSync keeps whole gradients on the rank and sends nothing; the next backward reduces the sum', () => {
      atLeast(2, () => {
        for (const strategy of ['FULL_SHARD', 'SHARD_GRAD_OP', 'NO_SHARD'])
          compare(`nosync_${strategy}`, (theirs, ours) => {
            for (const style of STYLES) {
              const expected = theirs[style] as unknown as {
                readonly events: readonly (readonly (string | number)[])[]
                readonly inside: unknown
                readonly grads_after_sync: Named
              }
              const own = ours.noSync[strategy]?.[style]
              const words = expected.events.map(([name, ...rest]) => {
                const numbers = rest.filter((item) => typeof item === 'number')
                return numbers.length > 0 ? `${name} ${numbers.at(-1)}` : [name, ...rest].join(' ')
              })
              expect(own?.events).toEqual(words)
              expect(own?.inside).toEqual(expected.inside)
              closeNamed(own?.grads, expected.grads_after_sync, `${strategy} ${style}`)
            }
          })
      })
    })

    test('gradients of noSync that zeroGrad dropped are gone', () => {
      for (const { droppedNoSync } of ranks) for (const style of STYLES) expect(droppedNoSync[style][0]).toEqual(droppedNoSync[style][1])
    })

    test('summonFullParams shows whole parameters, and keeps what each rank wrote to its part', () => {
      atLeast(2, () => {
        for (const strategy of ['FULL_SHARD', 'SHARD_GRAD_OP', 'NO_SHARD'])
          for (const style of STYLES)
            compare(`summon_${strategy}_${style}`, (theirs, ours) => {
              const own: Readonly<Record<string, unknown>> = ours.summoned[strategy]?.[style] ?? {}
              for (const step of ['writeback=True', 'writeback=False']) {
                const [actual, expected] = [own[step] as SummonStep, theirs[step] as unknown as SummonStep]
                expect(actual.seen).toEqual(expected.seen.map(([name, shape]) => [name, shape]))
                closeNamed(actual.after_local, expected.after_local, step)
                if (expected.after_full !== null) closeByName(actual.after_full, expected.after_full)
              }
              expect(own['rank0_only']).toEqual(theirs['rank0_only'])
              expect(own['recurse=False']).toEqual(theirs['recurse=False'])
              expect(own['err_writeback_rank0_only']).toContain(errorOf(theirs['err_writeback_rank0_only']))
              expect(own['nested']).toContain(errorOf(theirs['nested']))
              // There original parameters let it pass, and flat ones fail an assertion about sizes.
              if (style === 'orig') expect(theirs['forward_inside']).toBeNull()
              else if (strategy === 'NO_SHARD') expect(theirs['forward_inside']).toBeNull()
              else expect(errorOf(theirs['forward_inside'])).toMatch(/Expects tensor to be unsharded/)
              expect(own['forward_inside']).toContain('forward was called inside summonFullParams')
              if (style === 'orig') closeNamed(own['with_grads'] as Named, theirs['with_grads'] as unknown as Named, 'with grads')
              else expect(own['with_grads']).toContain(errorOf(theirs['with_grads']))
            })
      })
    })

    test('clipGradNorm_ scales by the norm over all ranks', () => {
      atLeast(4, () => {
        for (const strategy of ['FULL_SHARD', 'NO_SHARD'])
          for (const style of STYLES)
            compare(`clip_${strategy}_${style}`, (theirs, ours) => {
              const own: Readonly<Record<string, unknown>> = ours.clipped[strategy]?.[style] ?? {}
              for (const norm of ['2.0', '1.0', 'inf']) {
                const actual = own[norm] as { readonly total: number; readonly grads_after_local: Named }
                const expected = theirs[norm] as unknown as typeof actual
                close([actual.total], [expected.total])
                closeNamed(actual.grads_after_local, expected.grads_after_local, norm)
              }
              const [actual, expected] = [own, theirs].map(
                (run) => run['train'] as { readonly losses: readonly number[]; readonly norms: readonly number[] },
              )
              close(actual?.losses, expected?.losses)
              close(actual?.norms, expected?.norms)
              expect(own['child']).toContain('`clip_grad_norm_()` should only be called on the root FSDP instance')
              if (theirs['child_error'] !== undefined) expect(own['child']).toContain(errorOf(theirs['child_error']))
            })
      })
    })

    test('state dicts of all types have the names and values of PyTorch, and load', () => {
      atLeast(2, () => {
        for (const name of ['Mlp', 'Odd', 'Tied', 'Tower', 'ConvBn'])
          for (const style of STYLES)
            compare(`statedict_${name}_${style}`, (theirs, ours, rank) => {
              const own: Readonly<Record<string, unknown>> = ours.stateDicts[name]?.[style] ?? {}
              for (const type of ['FULL', 'LOCAL', 'SHARDED']) {
                const actual = own[type] as Saved
                const expected = theirs[type] as unknown as Partial<Saved> & { readonly error?: string }
                if (expected.error !== undefined) {
                  expect(actual.load, `${name} ${type}`).toMatch(/^LoadStateError: .*Unexpected key\(s\) in stateDict: "_flat_param"/s)
                  continue
                }
                expect(actual.load).toBe('no error')
                expect(actual.loadedEquals).toBe(true)
                // Batch norms count batches in PyTorch only.
                const keys = (expected.keys ?? []).filter((key) => !key.endsWith('num_batches_tracked')).map(ownName)
                expect(actual.keys.filter((key) => !key.endsWith('numBatchesTracked')).toSorted()).toEqual(keys.toSorted())
                for (const [key, value] of Object.entries(expected.values ?? {}))
                  if (!key.endsWith('num_batches_tracked')) closeValue(actual.values[ownName(key)], value, `${name} ${type} ${key}`)
              }
              const onRank0 = theirs['FULL_rank0'] as unknown as {
                readonly keys: readonly string[]
                readonly values: Readonly<Record<string, unknown>>
              }
              const rank0 = own['rank0'] as ByName
              expect(Object.keys(rank0)).toEqual(rank === 0 ? own['plain'] : [])
              expect(Object.keys(rank0).filter((key) => !key.endsWith('numBatchesTracked'))).toEqual(
                onRank0.keys.filter((key) => !key.endsWith('num_batches_tracked')).map(ownName),
              )
              for (const [key, value] of Object.entries(onRank0.values ?? {}))
                if (!key.endsWith('num_batches_tracked')) closeValue(rank0[ownName(key)], value, `${name} on rank 0 ${key}`)
              expect(theirs['default_type']).toBe('StateDictType.FULL_STATE_DICT')
              expect(own['plain']).toEqual((own['FULL'] as Saved).keys)
              // With a mesh PyTorch shows the same rows as DTensors.
              const initial = own['initial'] as Readonly<Record<string, { readonly local?: readonly (readonly unknown[])[] }>>
              for (const [key, value] of Object.entries(theirs['SHARDED_with_device_mesh'] as unknown as Readonly<Record<string, never>>)) {
                const { DTensor } = value as { readonly DTensor?: { readonly local: RecordedTensor } }
                if (DTensor === undefined) continue
                const rows = initial[ownName(key)]?.local?.[0]?.[2] as RecordedTensor | undefined
                if (rows === undefined) expect(DTensor.local.data, key).toEqual([])
                else closeTensor(rows, DTensor.local, key)
              }
              const keysIn = (text: string, which: string): string[] =>
                [...(new RegExp(`${which}=\\[([^\\]]*)\\]`).exec(text)?.[1] ?? '').matchAll(/'([^']*)'/g)].map(([, key = '']) => ownName(key))
              const wrong = theirs['missing_and_unexpected'] as unknown as { readonly nonstrict: string; readonly strict: unknown }
              expect(own['nonstrict']).toEqual({
                missingKeys: keysIn(wrong.nonstrict, 'missing_keys'),
                unexpectedKeys: keysIn(wrong.nonstrict, 'unexpected_keys'),
              })
              expect(errorOf(wrong.strict)).toMatch(
                /loading state_dict for FullyShardedDataParallel:\s+Missing key\(s\).*\s+Unexpected key\(s\) in state_dict: "extra"/,
              )
              expect(own['strict']).toMatch(
                /^LoadStateError: .*FullyShardedDataParallel.*Missing key\(s\).*Unexpected key\(s\) in stateDict: "extra"/s,
              )
            })
      })
    })

    test('states of optimizers: whole, sharded and local forms are those of PyTorch, and load', () => {
      atLeast(3, () => {
        for (const name of ['Mlp', 'Tied', 'Tower'])
          for (const style of STYLES)
            for (const kind of ['adam', 'sgd'] as const)
              compare(`optim_${name}_${style}_${kind}`, (theirs, ours, rank) => {
                const own: Readonly<Record<string, States>> = ours.optimizerStates[name]?.[style][kind] ?? {}
                const state = (key: string): States => ((theirs[key] as unknown as { readonly state?: States }).state ?? {}) as States
                const where = `${name} ${style} ${kind}`
                closeStates(own['local'], state('raw_local'), `${where} local`)
                expect(own['rank0']).toEqual(rank === 0 ? Object.keys(own['full'] ?? {}) : [])
                expect(own['shard']).toEqual(own['local'])
                expect(own['scattered']).toEqual(own['local'])
                const { losses, numbered } = own as unknown as {
                  readonly losses: readonly number[]
                  readonly numbered: { readonly ids: readonly string[]; readonly groups: readonly Readonly<Record<string, unknown>>[] }
                }
                close(losses, theirs['losses'])
                const ids = theirs['rekey_to_param_id'] as unknown as {
                  readonly state_keys?: readonly string[]
                  readonly groups?: typeof numbered.groups
                }
                if (rank === 0) {
                  expect(numbered.ids.toSorted()).toEqual(ids.state_keys?.toSorted())
                  expect(numbered.groups.map((group) => group['params'])).toEqual(ids.groups?.map((group) => group['params']))
                }
                for (const group of numbered.groups)
                  for (const [key, value] of Object.entries(ids.groups?.[0] ?? {}))
                    if (typeof value === 'number' || typeof value === 'boolean') expect(group[camel(key)] ?? value, key).toEqual(value)
                const all = theirs['optim_state_dict_FULL'] as unknown as { readonly state_keys: readonly string[]; readonly loaded_equals: boolean }
                expect(Object.keys(own['FULL_STATE_DICT'] ?? {}).toSorted()).toEqual(all.state_keys.toSorted())
                const onRank0 = theirs['optim_state_dict_FULL_rank0'] as unknown as { readonly state_keys: readonly string[] }
                expect(Object.keys(own['onRank0'] ?? {}).toSorted()).toEqual(onRank0.state_keys.toSorted())
                for (const form of [
                  'full_optim_state_dict',
                  'shard_full_optim_state_dict',
                  'scatter_full_optim_state_dict',
                  'optim_state_dict_SHARDED',
                ])
                  expect(theirs[form], form).toBeDefined()
                // Of original parameters PyTorch gathers the names of a state from a set, in an order that differs between ranks: Adam's averages get mixed up.
                if (style === 'flat' || kind === 'sgd') {
                  if (rank === 0) closeStates(own['full'], state('full_optim_state_dict'), `${where} full`)
                  closeStates(own['shard'], state('shard_full_optim_state_dict'), `${where} shard`)
                  closeStates(own['scattered'], state('scatter_full_optim_state_dict'), `${where} scatter`)
                  expect(all.loaded_equals).toBe(true)
                  const { dict } = theirs['optim_state_dict_SHARDED'] as unknown as { readonly dict: { readonly state: States } }
                  closeStates(own['SHARDED_STATE_DICT'], dict.state, `${where} sharded`)
                }
                expect(own['FULL_STATE_DICT']).toEqual(own['full'])
                expect(own['FULL_STATE_DICT loaded']).toEqual(own['local'])
                expect(own['SHARDED_STATE_DICT loaded']).toEqual(own['local'])
                expect(own['names']).toEqual(Object.keys(own['full'] ?? {}))
              })
      })
    })

    test('one rank with an infinite gradient skips the step on all, and halves the scale', () => {
      atLeast(1, () => {
        compare('grad_scaler', (theirs, ours) => {
          const steps = theirs['steps'] as unknown as readonly { readonly loss: number; readonly scale: number; readonly stepped: boolean }[]
          expect(ours.gradScaler.steps.map(({ scale, stepped }) => ({ scale, stepped }))).toEqual(
            steps.map(({ scale, stepped }) => ({ scale, stepped })),
          )
          close(
            ours.gradScaler.steps.map(({ loss }) => Number(loss)),
            steps.map(({ loss }) => loss),
          )
          expect(ours.gradScaler.state).toEqual(
            Object.fromEntries(Object.entries(theirs['state'] ?? {}).map(([key, value]) => [camel(key.replace(/^_/, '')), value])),
          )
          closeByName(ours.gradScaler.final, theirs['final'] as unknown as ByName)
        })
      })
    })

    test('an unused parameter of a unit gets zeros, an unused unit nothing, as in PyTorch', () => {
      atLeast(1, () => {
        compare('errors', (theirs, ours) => {
          for (const kind of ['flat', 'orig', 'wrapped']) closeNamed(ours.unused[kind], theirs[`unused_${kind}`] as unknown as Named, kind)
        })
      })
    })

    test('a step after an evaluation, an exception in forward, a child that ran first, copies', () => {
      for (const { edges } of ranks) {
        const { stepAfterEvaluation, afterFailure, failure, childFirst, apply, synced, fallsThrough } = edges as Readonly<Record<string, unknown>>
        const pair = (value: unknown): readonly [Named, Named] => value as readonly [Named, Named]
        expect(pair(stepAfterEvaluation)[1]).toEqual(pair(stepAfterEvaluation)[0])
        expect(failure).not.toBe('no error')
        expect(pair(afterFailure)[1]).toEqual(pair(afterFailure)[0])
        expect(childFirst).toMatch(/the unit Block has run by itself, so it is a root/)
        expect(new Set((apply as ByName)['net.0.weight']?.data)).toEqual(new Set([0.25]))
        expect(new Set((apply as ByName)['net.0.bias']?.data).size).toBeGreaterThan(1)
        for (const { data } of Object.values(synced as ByName)) expect(new Set(data)).toEqual(new Set([1]))
        expect(fallsThrough).toBe(3)
      }
    })

    test('mixed precision: what forward sees, what is sent, and the weights are those of PyTorch', () => {
      for (const { notCast } of ranks) expect(notCast).toMatch(/float32.*bfloat16|bfloat16.*float32/)
      compare('mixed_precision', (theirs, ours) => {
        for (const style of STYLES) expect(errorOf(theirs[`nocast_${style}`])).toMatch(/mat1 and mat2 must have the same dtype/)
        // The defaults; batch norms are excepted there by class, and here by wrapping them.
        expect(theirs['repr']).toMatch(/param_dtype=None.*keep_low_precision_grads=False, cast_forward_inputs=False, cast_root_forward_inputs=True/)
        expect(errorOf(theirs['cpu_offload'])).toContain('accelerator')
        for (const [name, own] of Object.entries(ours.mixed)) {
          const expected = theirs[name] as unknown as {
            readonly seen: readonly (readonly (string | null)[])[]
            readonly losses: readonly number[]
            readonly final: ByName
            readonly param_dtype_after: readonly string[]
            readonly events: readonly (readonly (string | number)[])[]
          }
          expect(own.seen, name).toEqual(expected.seen.map((entry) => entry.map((dtype) => dtype?.replace('torch.', '') ?? null)))
          expect(own.dtypes.map((dtype) => `torch.${dtype}`)).toEqual(expected.param_dtype_after)
          // Sums of halves are exact on the way here: they travel as float32. There they are rounded after each rank.
          const gathers = expected.events.filter(([kind]) => kind === 'all_gather').map(([, numel, dtype]) => `allgather(${dtype}[${numel}])`)
          expect(own.events.filter(([kind]) => kind === 'allgather').map(([, text]) => text)).toEqual(gathers)
          const isExact = name.includes('f64')
          const tolerance = isExact ? 1e-6 : 2e-3
          own.losses.forEach((value, i) => expect(Math.abs(value - (expected.losses[i] ?? NaN)), name).toBeLessThan(tolerance))
          for (const [key, { data }] of Object.entries(own.final))
            data.forEach((value, i) => expect(Math.abs(value - (expected.final[key]?.data[i] ?? NaN)), key).toBeLessThan(tolerance / 2))
        }
      })
    })
  })
