// What nodes do besides computing their value. It tells which unused nodes must stay, and which nodes must not be merged, folded or moved.
import { checkArgument, declareEffects, effectsOf, lookupTarget, targetInfo, snakeCase, isFunction } from '../../protocol/index.ts'
import type { Effects, TargetFunction } from '../../protocol/index.ts'
import { GraphError, TraceError } from './errors.ts'
import type { Node, Opcode, Target } from './node.ts'

/**
 * Declares that calls of `fn` do something besides computing their result, so that they are never removed as dead code. Returns `fn`. For a wrapped function,
 * pass what `wrap` returned. Throws ArgumentError for anything but a function. PyTorch's torch.fx.node.has_side_effect.
 */
export function hasSideEffect<F extends TargetFunction>(fn: F): F {
  checkArgument(isFunction(fn), 'hasSideEffect', 'fn', 'a function', fn)
  declareEffects(fn, 'io')
  return fn
}

/** What a node does besides computing its value. */
export function nodeEffects(node: Node): Effects {
  switch (node.op) {
    case 'placeholder':
    case 'output':
      return 'io'
    case 'call_function': {
      const fn = node.target
      const effects = effectsOf(fn)
      if (effects !== 'pure') return effects
      return worksInPlace(node, fn) ? 'mutates' : bodyEffects(node)
    }
    case 'call_method':
      // In-place methods end in an underscore (x.add_(1)). PyTorch removes them if unused.
      return isInPlaceName(node.target) || node.target === 'backward' ? 'mutates' : methodEffects(node.target)
    case 'call_module':
      return node.graph.owningModule?.isImpureModule(node.target) === true ? 'io' : 'pure'
    default:
      return 'pure'
  }
}

/** See Node.isImpure. */
export function isImpureNode(node: Node, impureRandom: boolean): boolean {
  if (node.op === 'call_module' && node.graph.owningModule === null)
    throw new GraphError(`node '${node.name}': graph.owningModule not set for purity check; give the graph to a GraphModule first.`)
  const effects = nodeEffects(node)
  return effects !== 'pure' && (impureRandom || effects !== 'random')
}

const isInPlaceName = (method: string): boolean => /[^_]_$/.test(method)

/** Control flow has the effects of its bodies, which are GraphModules among its arguments. */
function bodyEffects(node: Node): Effects {
  const module = node.graph.owningModule
  const isBody = (input: Node): boolean => input.op === 'get_attr' && module?.isImpureBody(input.target) === true
  return module !== null && node.allInputNodes.some(isBody) ? 'io' : 'pure'
}

/** A method has the effects of the operator of that name: `x.bernoulli()` is as random as torch.bernoulli. */
function methodEffects(name: string): Effects {
  const operator = lookupTarget(`torch.${snakeCase(name)}`) ?? lookupTarget(`torch.Tensor.${snakeCase(name)}`)
  return operator === undefined ? 'pure' : effectsOf(operator)
}

/** Whether the call asks for it: `F.relu(x, { inplace: true })`. */
function worksInPlace(node: Node, fn: TargetFunction): boolean {
  if (Object.hasOwn(node.kwargs, 'inplace')) return node.kwargs['inplace'] === true
  const position = targetInfo(fn)?.schema?.args.findIndex((arg) => arg.name === 'inplace') ?? -1
  return position >= 0 && node.args[position] === true
}

/** Throws TraceError for a call that writes into its arguments. */
export function refuseMutation(op: Opcode, target: Target): void {
  const mutates = typeof target === 'string' ? op === 'call_method' && isInPlaceName(target) : effectsOf(target) === 'mutates'
  if (!mutates) return
  const info = targetInfo(target)
  throw new TraceError(
    `Tried to trace mutable operation ${info?.schema?.text ?? info?.name ?? String(target)}. FX only supports functional code, so operations that mutate operands in-place (e.g. via \`out\` arguments) are not supported`,
    'Use the operator without the trailing underscore, or trace with checkMutableOperations = false.',
  )
}

/** Whether a node is of a kind, for TypeScript. */
export const hasOp = <O extends Opcode>(node: Node, op: O): node is Extract<Node, { readonly op: O }> => node.op === op
