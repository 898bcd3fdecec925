// What a GraphModule holds, as far as files keep it: modules and tensors by their paths.
import { Container } from '../fx/container.ts'
import type { GraphModule } from '../fx/index.ts'
import { Module } from '../module/index.ts'
import { Tensor } from '../tensor/index.ts'

/** Modules and tensors of a GraphModule: what its graph refers to, then what else it holds. */
export function* attributePaths(gm: GraphModule): Generator<string> {
  const read = new Set<string>()
  for (const { op, target } of gm.graph.nodes) {
    if ((op !== 'call_module' && op !== 'get_attr') || read.has(target as string)) continue
    read.add(target as string)
    yield target as string
  }
  yield* heldPaths(gm, '')
}

function* heldPaths(owner: Module, prefix: string): Generator<string> {
  for (const [name, value] of Object.entries(owner)) {
    if (value instanceof Container) yield* heldPaths(value, `${prefix}${name}.`)
    else if (value instanceof Module || value instanceof Tensor) yield prefix + name
  }
}
