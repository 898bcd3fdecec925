// The sharded trees, name maps and profiler results that two processes of PyTorch recorded (test/goldens/fsdp). The fake world plays both ranks.
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { destroyProcessGroup, initProcessGroup, isInitialized } from 'tensorfx/distributed'
import {
  FullyShardedDataParallel,
  ModuleWrapPolicy,
  SimpleProfiler,
  describeUnits,
  fullyShard,
  getShardedModuleTreeWithModuleNameToFqns,
} from 'tensorfx/distributed/fsdp'
import * as scenario from './scenarios/fsdpModels.mjs'

interface Tree {
  readonly tree: string
  readonly fqns: Readonly<Record<string, readonly string[]>>
}

interface Recorded {
  readonly fsdp1: {
    readonly 'fsdp_wrapper(use_orig_params=False)': Tree
    readonly str_model: string
    readonly fwd_ok: readonly number[]
    readonly flat_param_numel: Readonly<Record<string, number>>
    readonly flat_param_info: Readonly<Record<'_fqns' | '_numels' | '_shapes' | '_unpadded_unsharded_size' | '_sharded_size', unknown>> & {
      readonly _shard_numel_padded: number
      readonly rank: number
    }
  }
  readonly fsdp1_use_orig_params: Tree & { readonly named_parameters: readonly string[] }
  readonly fsdp1_partial: { readonly only_u1_wrapped_root_plain: Tree }
  readonly fsdp2_fully_shard: Tree & {
    readonly str_model: string
    readonly params: Readonly<Record<string, readonly [shape: readonly number[], local: readonly number[], placement: string]>>
  }
  readonly 'composable_state_emulated (the docstring case)': Tree
  readonly plain_module: Tree
  readonly SimpleProfiler: {
    readonly double_profile_error: string
    readonly profiling_after_error: readonly unknown[]
    readonly after_reset: readonly [unknown, unknown]
    readonly types: Readonly<Record<string, string>>
  }
}

const recorded = [0, 1].map(
  (rank) => JSON.parse(readFileSync(new URL(`../goldens/fsdp/fsdp_debug_rank${rank}.json`, import.meta.url), 'utf8')) as Recorded,
)

const UnitModule = scenario.UnitModule as new () => nn.Module
const models = scenario.models as Readonly<Record<string, new () => nn.Module>>
const composite = (): nn.Module => {
  const type = models['CompositeModel']
  if (type === undefined) throw new Error('there is no CompositeModel')
  return scenario.init(new type()) as nn.Module
}
const policy = new ModuleWrapPolicy([UnitModule])
const withoutMarks = (tree: string): string => tree.replaceAll(' FULLY SHARDED', '')

afterEach(() => {
  if (isInitialized()) destroyProcessGroup()
})

describe.each(recorded.map((theirs, rank) => ({ theirs, rank })))('rank $rank', ({ theirs, rank }) => {
  const join = (): Promise<void> => initProcessGroup({ backend: 'fake', worldSize: 2, rank })

  // PyTorch 2.13 marks no wrapped model, since it looks for the state of wrappers; ours marks it.
  test.each([false, true])('a wrapped model, original parameters: %s', async (useOrigParams) => {
    await join()
    const model = new FullyShardedDataParallel(composite(), { autoWrapPolicy: policy, useOrigParams })
    const expected = useOrigParams ? theirs.fsdp1_use_orig_params : theirs.fsdp1['fsdp_wrapper(use_orig_params=False)']
    const { tree } = getShardedModuleTreeWithModuleNameToFqns(model)
    expect(expected.fqns).toEqual({})
    expect(withoutMarks(tree)).toBe(expected.tree)
    expect(tree.match(/ FULLY SHARDED$/gm)).toHaveLength(3)
    const names = [...model.namedParameters()].map(([name]) => name)
    if (useOrigParams) expect(names).toEqual(theirs.fsdp1_use_orig_params.named_parameters)
    else {
      expect(String(model)).toBe(theirs.fsdp1.str_model)
      expect((model as unknown as (x: Tensor) => Tensor)(torch.ones([2, 8])).shape).toEqual(theirs.fsdp1.fwd_ok)
      expect(Object.fromEntries([...model.namedParameters()].map(([name, p]) => [name, p.shape[0]]))).toEqual(theirs.fsdp1.flat_param_numel)
      const [unit] = describeUnits(model)
      const info = theirs.fsdp1.flat_param_info
      expect(info.rank).toBe(rank)
      expect(unit?.layout.names).toEqual(info._fqns)
      expect(unit?.layout.numels).toEqual(info._numels)
      expect(unit?.layout.entries.map(({ shape }) => shape)).toEqual(info._shapes)
      expect([[unit?.layout.numel], [unit?.layout.shardNumel], unit?.padding]).toEqual([
        info._unpadded_unsharded_size,
        info._sharded_size,
        info._shard_numel_padded,
      ])
    }
  })

  test('a plain model, one with a wrapped part, and the form of the documentation', async () => {
    await join()
    const plain = getShardedModuleTreeWithModuleNameToFqns(composite())
    expect([plain.tree, Object.fromEntries(plain.names)]).toEqual([theirs.plain_module.tree, theirs.plain_module.fqns])
    const partly = composite()
    Object.assign(partly, { u1: new FullyShardedDataParallel(partly.getSubmodule('u1')) })
    expect(withoutMarks(getShardedModuleTreeWithModuleNameToFqns(partly).tree)).toBe(theirs.fsdp1_partial.only_u1_wrapped_root_plain.tree)
    const model = new FullyShardedDataParallel(composite(), { autoWrapPolicy: policy })
    const expected = theirs['composable_state_emulated (the docstring case)']
    const { tree, names } = getShardedModuleTreeWithModuleNameToFqns(model, { wrappers: false })
    expect(tree).toBe(expected.tree)
    expect(Object.fromEntries(names)).toEqual(expected.fqns)
  })

  test('fullyShard: tree, text, and the rows of this rank', async () => {
    await join()
    const model = composite()
    for (const name of ['u1', 'u2']) fullyShard(model.getSubmodule(name))
    fullyShard(model)
    const expected = theirs.fsdp2_fully_shard
    expect(withoutMarks(getShardedModuleTreeWithModuleNameToFqns(model).tree)).toBe(expected.tree)
    expect(String(model)).toBe(expected.str_model)
    expect([...model.namedParameters()].map(([name, p]) => [name, p.shape])).toEqual(
      Object.entries(expected.params).map(([name, [, local]]) => [name, local]),
    )
  })

  test('SimpleProfiler: types, the error of a second time, reset', () => {
    const expected = theirs.SimpleProfiler
    expect(SimpleProfiler.Type).toEqual(expected.types)
    const twice = (): void => SimpleProfiler.profile('all', () => SimpleProfiler.profile('all', () => undefined))
    // An enum prints its own name there.
    expect(twice).toThrow(expected.double_profile_error.replace('Type.ALL', 'all'))
    expect(SimpleProfiler.profiling).toEqual(expected.profiling_after_error)
    SimpleProfiler.reset()
    expect([SimpleProfiler.results, SimpleProfiler.profiling]).toEqual(expected.after_reset)
  })
})
