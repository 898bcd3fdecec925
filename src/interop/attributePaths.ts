// The modules and tensors of a GraphModule that files keep, by path.
import { referringNodes } from '../fx/graph/lint.ts'
import { Container } from '../fx/run/attributes.ts'
import type { GraphModule } from '../fx/index.ts'
import { Module } from '../module/index.ts'
import { Tensor } from '../tensor/index.ts'

/** The paths of the modules and tensors that the graph refers to, followed by those of the others that the GraphModule has. */
export function* attributePaths(gm: GraphModule): Generator<string> {
  const read = new Set<string>()
  for (const { target } of referringNodes(gm.graph)) {
    if (read.has(target)) continue
    read.add(target)
    yield target
  }
  yield* heldPaths(gm, '')
}

function* heldPaths(owner: Module, prefix: string): Generator<string> {
  for (const [name, value] of Object.entries(owner)) {
    if (value instanceof Container) yield* heldPaths(value, `${prefix}${name}.`)
    else if (value instanceof Module || value instanceof Tensor) yield prefix + name
  }
}
