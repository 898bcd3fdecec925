// Common subexpressions: an operation that is computed twice from the same values is computed once. PyTorch's CSEPass.
import { Graph } from '../graph.ts'
import { GraphModule } from '../graphModule.ts'
import { Node } from '../node.ts'
import type { Argument, Target } from '../node.ts'
import { nodeEffects } from '../purity.ts'
import { Slice } from '../slice.ts'
import { isTuple } from '../tuple.ts'
import { PassBase, PassResult } from './passBase.ts'

/** Merges equal calls of functions and methods. Random operators, those with side effects, module calls and `bannedOps` are left alone; writes end what is known before them. */
export class CSEPass extends PassBase {
  readonly #banned: ReadonlySet<Target>

  constructor(bannedOps: Iterable<Target> = []) {
    super()
    this.#banned = new Set(bannedOps)
  }

  override call(gm: GraphModule): PassResult {
    const graph = new Graph()
    const env = new Map<Node, Node>()
    const known = new Map<string, Node>()
    const ids = new Ids()
    let modified = false
    for (const node of gm.graph.nodes) {
      if (writes(node)) known.clear()
      const key = this.#mergeable(node) ? keyOf(node, env, ids) : null
      const earlier = key === null ? undefined : known.get(key)
      if (earlier !== undefined) {
        env.set(node, earlier)
        modified = true
        continue
      }
      const copy = graph.nodeCopy(node, (n) => env.get(n) as Node)
      env.set(node, copy)
      if (key !== null) known.set(key, copy)
    }
    graph.setCodegen(gm.graph.codegen)
    return new PassResult(new GraphModule(gm, graph), modified)
  }

  #mergeable(node: Node): boolean {
    if (node.op !== 'call_function' && node.op !== 'call_method') return false
    return nodeEffects(node) === 'pure' && !this.#banned.has(node.target)
  }
}

/** Whether the node may change values that others have read: in-place operators, and modules, whose inside is not known. */
function writes(node: Node): boolean {
  if (node.op !== 'call_function' && node.op !== 'call_method') return node.op === 'call_module'
  const effects = nodeEffects(node)
  return effects === 'mutates' || effects === 'io'
}

/** Numbers for values that have no text of their own. */
class Ids {
  readonly #ids = new Map<unknown, number>()

  of(value: unknown): number {
    let id = this.#ids.get(value)
    if (id === undefined) this.#ids.set(value, (id = this.#ids.size))
    return id
  }
}

function keyOf(node: Node, env: ReadonlyMap<Node, Node>, ids: Ids): string {
  const text = (value: Argument): string => {
    if (value instanceof Node) return `%${ids.of(env.get(value))}`
    if (typeof value === 'string') return JSON.stringify(value)
    if (typeof value !== 'object' || value === null)
      return typeof value === 'function' ? `f${ids.of(value)}` : Object.is(value, -0) ? '-0' : String(value)
    if (Array.isArray(value)) return `${isTuple(value) ? 't' : ''}[${(value as Argument[]).map(text).join()}]`
    if (value instanceof Slice) return `slice(${[value.start, value.stop, value.step].map((v) => text(v as Argument)).join()})`
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype === Object.prototype || prototype === null)
      return `{${Object.entries(value)
        .map(([k, v]) => `${JSON.stringify(k)}:${text(v as Argument)}`)
        .join()}}`
    return `o${ids.of(value)}`
  }
  const target = node.op === 'call_method' ? `.${node.target as string}` : `f${ids.of(node.target)}`
  return `${target}(${node.args.map(text).join()};${text(node.kwargs)})`
}
