// Evaluates nodes, given the values of their inputs. Used by the methods of Interpreter, and by a GraphModule whose graph is too long to compile.
import { Module } from '../../module/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { isCallable, remembered } from '../../protocol/index.ts'
import { GraphError } from '../graph/errors.ts'
import type { Graph } from '../graph/graph.ts'
import { explainInterpreted } from '../text/explain.ts'
import { mapArg } from '../graph/mapArg.ts'
import type { Node } from '../graph/node.ts'

/** Positional arguments. */
export type Values = readonly unknown[]
/** Keyword arguments. */
export type Named = Readonly<Record<string, unknown>>

/** Keyword arguments are passed as one trailing object. */
const withOptions = (args: Values, kwargs: Named): unknown[] => (Object.keys(kwargs).length === 0 ? [...args] : [...args, kwargs])

/** Whether a parameter is `*args` (but not `**kwargs`). */
const isRest = (target: string): boolean => target.startsWith('*') && !target.startsWith('**')

/** Takes the value of a placeholder from the front of `inputs`. `args` holds its default, which undefined stands for, as in JavaScript. */
export function takeInput(target: string, args: Values, inputs: unknown[]): unknown {
  if (isRest(target)) return inputs.splice(0)
  const given = inputs.length > 0
  const value = inputs.shift()
  if (given && (value !== undefined || args.length === 0)) return value
  if (args.length > 0) return args[0]
  throw new GraphError(`Expected positional argument for parameter ${target}, but one was not passed in!`)
}

/** Calls a function. */
export function evaluateFunction(target: TargetFunction, args: Values, kwargs: Named): unknown {
  return target(...withOptions(args, kwargs))
}

/** Calls a method of `args[0]`, or `args[0]` itself for `__call__`. Throws GraphError if there is no such method. */
export function evaluateMethod(target: string, args: Values, kwargs: Named): unknown {
  const [self, ...rest] = args
  const method: unknown = target === '__call__' ? self : self === null || self === undefined ? undefined : Reflect.get(Object(self), target)
  if (!isCallable(method)) throw new GraphError(`call_method: the value has no method '${target}'.`)
  // Not `method.apply`, which on a traced value would be another attribute.
  return Reflect.apply(method, target === '__call__' ? undefined : self, withOptions(rest, kwargs))
}

/** Calls the module that `target` refers to. Throws GraphError if it is not a module. */
export function evaluateModule(target: string, module: unknown, args: Values, kwargs: Named): unknown {
  if (!(module instanceof Module)) throw new GraphError(`call_module: the attribute '${target}' is not a Module.`)
  return Reflect.apply(module.call, module, withOptions(args, kwargs))
}

/** The attribute of a module at a dotted path. Throws GraphError if there is none. */
export function evaluateAttribute(module: { attribute(path: string): unknown }, path: string): unknown {
  const value = module.attribute(path)
  if (value === undefined) throw new GraphError(`Node referenced nonexistent target ${missingPart(path, (p) => module.attribute(p))}`)
  return value
}

/** The path up to and including its first missing part. */
function missingPart(path: string, attribute: (path: string) => unknown): string {
  const parts = path.split('.')
  for (let i = 1; i < parts.length; i++) {
    const prefix = parts.slice(0, i).join('.')
    if (attribute(prefix) === undefined) return prefix
  }
  return path
}

/** Returns the values of nodes, for `mapArg` on the arguments of `user`. Throws GraphError for a node without a value. */
export function valuesFrom(env: ReadonlyMap<Node, unknown>, user: Node): (input: Node) => unknown {
  return (input) => {
    if (!env.has(input))
      throw new GraphError(`Node ${user.name} referenced nonexistent value ${input.name}! Run Graph.lint() to diagnose such issues`)
    return env.get(input)
  }
}

/** For each node, the values of which it is the last user. */
export function lastUses(graph: Graph): Map<Node, Node[]> {
  const uses = new Map<Node, Node[]>()
  const seen = new Set<Node>()
  for (const user of graph.nodes.reversed()) {
    for (const input of user.allInputNodes) {
      if (seen.has(input)) continue
      seen.add(input)
      remembered(uses, user, () => []).push(input)
    }
  }
  return uses
}

/** What running a graph needs of its module. */
interface Interpreted {
  readonly graph: Graph
  attribute(path: string): unknown
}

/** The last uses in graphs that ran, until they are edited. */
const knownUses = new WeakMap<Graph, { readonly edits: number; readonly uses: ReadonlyMap<Node, readonly Node[]> }>()

function usesIn(graph: Graph): ReadonlyMap<Node, readonly Node[]> {
  const { edits } = graph
  let known = knownUses.get(graph)
  if (known?.edits !== edits) knownUses.set(graph, (known = { edits, uses: lastUses(graph) }))
  return known.uses
}

/** Runs a module's graph node by node, where it cannot be compiled. Takes and returns what the compiled function does. */
export function runGraph(module: Interpreted, inputs: Values): unknown {
  const { graph } = module
  const env = new Map<Node, unknown>()
  const dead = usesIn(graph)
  const remaining = [...graph.processInputs(...inputs)]
  for (const node of graph.nodes) {
    try {
      env.set(node, evaluateNode(module, node, valuesFrom(env, node), remaining))
    } catch (error) {
      explainInterpreted(error, node)
      throw error
    }
    for (const input of dead.get(node) ?? []) env.delete(input)
    if (node.op === 'output') return graph.processOutputs(env.get(node))
  }
  return graph.processOutputs(undefined)
}

/** The value of a node. `values` gives those of its inputs, and `inputs` holds the arguments of the graph that were not taken yet. */
export function evaluateNode(module: Pick<Interpreted, 'attribute'>, node: Node, values: (input: Node) => unknown, inputs: unknown[] = []): unknown {
  const args = mapArg(node.args, values)
  const kwargs = mapArg(node.kwargs, values)
  switch (node.op) {
    case 'placeholder':
      // A missing argument is undefined, as in the compiled function.
      return inputs.length + args.length === 0 && !isRest(node.target) ? undefined : takeInput(node.target, args, inputs)
    case 'get_attr':
      return evaluateAttribute(module, node.target)
    case 'call_function':
      return evaluateFunction(node.target, args, kwargs)
    case 'call_method':
      return evaluateMethod(node.target, args, kwargs)
    case 'call_module':
      return evaluateModule(node.target, evaluateAttribute(module, node.target), args, kwargs)
    default:
      return args[0]
  }
}
