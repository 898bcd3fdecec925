// What of a model is divided, and how: as a tree of text, by name, and in bytes.
import { ArgumentError } from '../../errors/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import type { Module } from '../../module/index.ts'
import { checkCount, checkOptions, isModule, valueText } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { joinPath } from './flatParameter.ts'
import type { FlatLayout, FlatShardMetadata, ShardParamInfo } from './flatParameter.ts'
import type { FlatHandle } from './handle.ts'
import { cleanName } from './names.ts'
import type { ShardingStrategy } from './unitOptions.ts'
import { unitAround, unitOrNone } from './unit.ts'

/** One unit of a model, as this rank has it. */
export interface UnitDescription {
  /** The path of the wrapped module, without wrappers. */
  readonly path: string
  readonly className: string
  readonly strategy: ShardingStrategy
  readonly layout: FlatLayout
  /** Which shard this rank stores, and what it holds. */
  readonly rank: number
  readonly shard: readonly ShardParamInfo[]
  readonly metadata: FlatShardMetadata | null
  /** The elements of the shard that only fill it up. */
  readonly padding: number
  readonly localShard: Tensor
}

function checkModel(where: string, model: unknown): asserts model is Module {
  if (!isModule(model)) throw new ArgumentError(`${where}: model must be a Module, got ${valueText(model)}.`)
}

/** The units of a model that have parameters of their own, the outer ones first: layouts, and what this rank stores. */
export function describeUnits(model: Module): UnitDescription[] {
  checkModel('describeUnits', model)
  return [...model.namedModules()].flatMap(([path, module]) => {
    const unit = unitOrNone(module)
    if (unit === undefined || unit.handle === null) return []
    const { layout, rank, infos, local, shardPadding } = unit.handle
    return [
      {
        path: cleanName(path),
        className: unit.inner.getName(),
        strategy: unit.settings.strategy,
        layout,
        rank,
        shard: infos,
        metadata: unit.handle.shardMetadata(),
        padding: shardPadding,
        localShard: local.detach(),
      },
    ]
  })
}

/** Options of {@link getShardedModuleTreeWithModuleNameToFqns}. */
export interface ShardedTreeOptions {
  /** Whether wrappers have lines of their own. Default true. */
  readonly wrappers?: boolean
  /** Whether lines of units end with the bytes of the unit and of this rank's shard. Default false. */
  readonly bytes?: boolean
}

const text = (bytes: number): string =>
  bytes < 1024 ? `${bytes} B` : bytes < 2 ** 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`

function bytesText({ layout, local, settings }: FlatHandle): string {
  const { size } = dtypeInfo[local.dtype]
  return ` (${text(layout.numel * size)}, ${text(layout.shardNumel * size)} on each of ${settings.shardGroup.size} ranks)`
}

interface Line {
  readonly path: string
  readonly module: Module
  readonly level: number
}

function* lines(module: Module, path: string, level: number, wrappers: boolean): Generator<Line> {
  const inner = wrappers ? undefined : unitOrNone(module)?.inner
  if (inner !== undefined && inner !== module) return yield* lines(inner, path, level, wrappers)
  yield { path, module, level }
  for (const [name, child] of module.namedChildren()) yield* lines(child, joinPath(path, name), level + 1, wrappers)
}

/**
 * A tree of the model as text, one line per module, in which ` FULLY SHARDED` marks modules whose parameters are divided; and by `path[Class]` of these the names
 * of their parameters. PyTorch's `_get_sharded_module_tree_with_module_name_to_fqns`, which prints no marks for wrapped models.
 *
 * @example
 * const { tree, names } = getShardedModuleTreeWithModuleNameToFqns(model)
 * console.log(tree)
 */
export function getShardedModuleTreeWithModuleNameToFqns(
  model: Module,
  options: ShardedTreeOptions = {},
): { readonly tree: string; readonly names: ReadonlyMap<string, readonly string[]> } {
  checkCount('getShardedModuleTreeWithModuleNameToFqns', arguments, 2)
  const where = 'getShardedModuleTreeWithModuleNameToFqns'
  checkOptions(where, options, { wrappers: 'boolean', bytes: 'boolean' })
  checkModel(where, model)
  const { wrappers = true, bytes = false } = options
  const names = new Map<string, readonly string[]>()
  let tree = ''
  for (const { path, module, level } of lines(model, '', 0, wrappers)) {
    const handle = unitAround(module)?.handle ?? undefined
    const title = `${path}[${module.getName()}]`
    tree += `${'    '.repeat(level)}${title}${handle === undefined ? '' : ' FULLY SHARDED'}${handle !== undefined && bytes ? bytesText(handle) : ''}\n`
    if (handle === undefined) continue
    const prefix = cleanName(path)
    names.set(title, [...(names.get(title) ?? []), ...handle.layout.names.map((name) => joinPath(prefix, name))])
  }
  return { tree, names }
}

/** The wrappers of a model, and modules that were given to `fullyShard`, the outer ones first. PyTorch's `FSDP.fsdp_modules`. */
export function fsdpModules(model: Module): Module[] {
  checkCount('fsdpModules', arguments, 1)
  checkModel('fsdpModules', model)
  return [...model.modules()].filter((module) => unitOrNone(module) !== undefined)
}
