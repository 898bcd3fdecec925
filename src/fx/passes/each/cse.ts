// Common subexpression elimination: an operation that is computed twice from the same values is computed once. PyTorch's CSEPass.
import type { Pass } from '../../../pipeline/index.ts'
import { checkCount, checkIterable, effectsOf, isFunction, isObject, namedTargets } from '../../../protocol/index.ts'
import type { TargetFunction } from '../../../protocol/index.ts'
import { Graph } from '../../graph/graph.ts'
import { GraphModule } from '../../run/graphModule.ts'
import { Node, isRecord } from '../../graph/node.ts'
import type { Argument, Target } from '../../graph/node.ts'
import { nodeEffects } from '../../graph/purity.ts'
import { Slice, isTuple } from '../../graph/pythonValues.ts'
import { PassBase, PassResult, asPass } from '../run/pass.ts'

/**
 * The functions that CSE must not merge: random operators and those that change their arguments. {@link CSEPass} never merges these, also without this list. PyTorch's
 * get_CSE_banned_ops.
 */
export const getCSEBannedOps = (): Set<TargetFunction> =>
  new Set([...namedTargets()].filter((fn) => effectsOf(fn) === 'random' || effectsOf(fn) === 'mutates'))

/**
 * Merges equal calls of functions and methods. Random operators, operators with side effects, calls of modules and `bannedOps` are not merged, and calls before a
 * write are not merged with calls after it.
 */
export class CSEPass extends PassBase {
  readonly #banned: ReadonlySet<Target>

  constructor(bannedOps: Iterable<Target> = []) {
    checkCount('CSEPass', arguments, 1)
    super()
    checkIterable('CSEPass', 'bannedOps', bannedOps)
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
      const copy = graph.nodeCopy(node, (n) => env.get(n))
      env.set(node, copy)
      if (key !== null) known.set(key, copy)
    }
    if (!modified) return new PassResult(gm, false)
    graph.setCodegen(gm.graph.codegen)
    return new PassResult(new GraphModule(gm, graph), modified)
  }

  #mergeable(node: Node): boolean {
    if (node.op !== 'call_function' && node.op !== 'call_method') return false
    return nodeEffects(node) === 'pure' && !this.#banned.has(node.target)
  }
}

/** Computes an operation that is computed twice from the same values only once. See {@link CSEPass}. */
export const cse: Pass<GraphModule> = asPass(new CSEPass(), 'cse')

/** Whether the node may change the values of other nodes. In-place operators do, and modules may, because what they do is not known. */
function writes(node: Node): boolean {
  if (node.op !== 'call_function' && node.op !== 'call_method') return node.op === 'call_module'
  const effects = nodeEffects(node)
  return effects === 'mutates' || effects === 'io'
}

/** Numbers for values that have no text. */
class Ids {
  readonly #ids = new Map<unknown, number>()

  of(value: unknown): number {
    let id = this.#ids.get(value)
    if (id === undefined) this.#ids.set(value, (id = this.#ids.size))
    return id
  }
}

/** A text that is equal for equal calls. */
function keyOf(node: Node, env: ReadonlyMap<Node, Node>, ids: Ids): string {
  const text = (value: Argument): string => {
    if (value instanceof Node) return `%${ids.of(env.get(value))}`
    if (typeof value === 'string') return JSON.stringify(value)
    if (isFunction(value)) return `f${ids.of(value)}`
    if (typeof value === 'bigint') return `${value}n`
    if (!isObject(value)) return Object.is(value, -0) ? '-0' : String(value)
    if (Array.isArray(value)) return `${isTuple(value) ? 't' : ''}[${value.map(text).join()}]`
    if (value instanceof Slice) return `slice(${[value.start, value.stop, value.step].map(text).join()})`
    if (!isRecord(value)) return `o${ids.of(value)}`
    const entries = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${text(item)}`)
    return `{${entries.join()}}`
  }
  const target = node.op === 'call_method' ? `.${node.target}` : `f${ids.of(node.target)}`
  return `${target}(${node.args.map(text).join()};${text(node.kwargs)})`
}
