// Which sizes and numbers differ between examples of a program's inputs. PyTorch's torch.fx.experimental._dynamism.
import { Module } from '../../module/index.ts'
import {
  checkArgument,
  checkArray,
  checkCount,
  checkDepth,
  checkString,
  isModule,
  isObject,
  isPlainObject,
  isTensorLike,
} from '../../protocol/index.ts'
import { extractTensorMetadata } from '../passes/nodes/meta.ts'

/** For each argument, by the path of each leaf in it (`L['x'][0]`): which dimensions differ between the examples. A number has one flag. */
export type Dynamism = Record<string, Record<string, boolean[]>>

/** A source with its attributes as keys: `L.self.weight` → `L['self']['weight']`. PyTorch's normalize_source_name. */
export function normalizeSourceName(name: string): string {
  checkString('normalizeSourceName', 'name', name)
  return name.replace(/\.([A-Za-z_]\w*)/g, "['$1']")
}

/**
 * A module as nested objects: `_parameters` (with the buffers), `_modules`, and the attributes that are numbers or tensors. PyTorch's module_to_nested_dict.
 */
export function moduleToNestedDict(module: Module): Record<string, unknown> {
  checkCount('moduleToNestedDict', arguments, 1)
  checkArgument(isModule(module), 'moduleToNestedDict', 'module', 'a Module', module)
  const root: Record<string, unknown> = {}
  const stack: [Module, Record<string, unknown>][] = [[module, root]]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [owner, into] = next
    const attributes = Object.entries(owner).filter(([, value]) => isTensorLike(value) || typeof value === 'number')
    const modules: Record<string, unknown> = {}
    into['_parameters'] = Object.fromEntries(attributes.filter(([, value]) => isTensorLike(value)))
    into['_modules'] = modules
    for (const [name, child] of owner.namedChildren()) {
      const inside: Record<string, unknown> = {}
      modules[name] = inside
      stack.push([child, inside])
    }
    for (const [name, value] of attributes.toSorted(([a], [b]) => (a < b ? -1 : 1))) into[name] = value
  }
  return root
}

/**
 * Compares examples of the inputs of a program, each an object from argument to value, and tells which sizes and numbers differ: what a compiler should not take as
 * constants. Modules are looked into ({@link moduleToNestedDict}); strings and other values are ignored. Throws ArgumentError for inputs nested too deep. PyTorch's track_dynamism_across_examples.
 *
 *     trackDynamismAcrossExamples([{ x: torch.zeros(2, 3) }, { x: torch.zeros(5, 3) }])  // { x: { "L['x']": [true, false] } }
 */
export function trackDynamismAcrossExamples(examples: readonly Readonly<Record<string, unknown>>[]): Dynamism {
  checkCount('trackDynamismAcrossExamples', arguments, 1)
  checkArray('trackDynamismAcrossExamples', 'examples', examples)
  examples.forEach((item, i) => checkArgument(isObject(item), 'trackDynamismAcrossExamples', `examples[${i}]`, 'an object of inputs', item))
  const seen = new Map<string, { argument: string; sizes: Set<unknown>[] }>()
  for (const example of examples)
    for (const [argument, value] of Object.entries(example))
      for (const [path, sizes] of leavesOf(value, `L['${argument}']`)) {
        const entry = seen.get(path) ?? { argument, sizes: [] }
        seen.set(path, entry)
        for (const [i, size] of sizes.entries()) (entry.sizes[i] ??= new Set()).add(size)
      }
  const result = new Map<string, [path: string, flags: boolean[]][]>()
  for (const [path, { argument, sizes }] of seen) result.set(argument, [...(result.get(argument) ?? []), [path, sizes.map((set) => set.size > 1)]])
  return Object.fromEntries([...result].map(([argument, flags]) => [argument, Object.fromEntries(flags)]))
}

/** The tensors (by their shapes) and numbers in a value, with their paths. */
function* leavesOf(value: unknown, path: string): Generator<[path: string, sizes: readonly unknown[]]> {
  const stack: [unknown, string, depth: number][] = [[value, path, 0]]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [item, at, depth] = next
    checkDepth(depth)
    if (isTensorLike(item)) yield [at, item.shape]
    else if (typeof item === 'number' || typeof item === 'boolean' || typeof item === 'bigint') yield [at, [item]]
    else if (Array.isArray(item)) stack.push(...item.map((v, i): [unknown, string, number] => [v, `${at}[${i}]`, depth + 1]).toReversed())
    else {
      const record = item instanceof Module ? moduleToNestedDict(item) : isPlainObject(item) ? item : {}
      stack.push(
        ...Object.entries(record)
          .map(([key, v]): [unknown, string, number] => [v, `${at}['${key}']`, depth + 1])
          .toReversed(),
      )
    }
  }
}

/** The value with a description of each tensor (shape, dtype, strides) in its place, which needs no memory. PyTorch's clone_and_convert_to_meta. */
export const cloneAndConvertToMeta = (value: unknown): unknown => extractTensorMetadata(value)
