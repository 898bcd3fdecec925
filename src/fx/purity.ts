// What nodes do besides computing their value: which of them stay though nobody uses them, and which must not be merged, folded or moved.
import { ArgumentError } from '../errors/index.ts'
import { declareEffects, effectsOf, lookupTarget, targetInfo } from '../protocol/index.ts'
import type { Effects, TargetFunction } from '../protocol/index.ts'
import { snakeCase } from './namespace.ts'
import type { Node } from './node.ts'

/**
 * Declares that calls of `fn` do something besides computing their result: they are never dead code. Returns `fn`, so that it may stand around a definition. Of a
 * function that graphs know by `wrap`, give what `wrap` returned. Throws ArgumentError for what is no function. PyTorch's torch.fx.node.has_side_effect.
 */
export function hasSideEffect<F extends TargetFunction>(fn: F): F {
  if (typeof fn !== 'function') throw new ArgumentError(`hasSideEffect: expected a function, got ${fn === null ? 'null' : typeof fn}.`)
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
      const fn = node.target as TargetFunction
      const effects = effectsOf(fn)
      if (effects !== 'pure') return effects
      return worksInPlace(node, fn) ? 'mutates' : bodyEffects(node)
    }
    case 'call_method':
      // In-place methods end in an underscore (x.add_(1)); PyTorch deletes those when unused.
      return /[^_]_$/.test(node.target as string) || node.target === 'backward' ? 'mutates' : methodEffects(node.target as string)
    case 'call_module':
      return node.graph.owningModule?.isImpureModule(node.target as string) === true ? 'io' : 'pure'
    default:
      return 'pure'
  }
}

/** Control flow does what its bodies do: modules that it gets as arguments. */
function bodyEffects(node: Node): Effects {
  const module = node.graph.owningModule
  const isBody = (input: Node): boolean => input.op === 'get_attr' && module?.isImpureBody(input.target as string) === true
  return module !== null && node.allInputNodes.some(isBody) ? 'io' : 'pure'
}

/** A method does what the operator of its name does: `x.bernoulli()` draws, as torch.bernoulli. */
function methodEffects(name: string): Effects {
  const operator = lookupTarget(`torch.${snakeCase(name)}`) ?? lookupTarget(`torch.Tensor.${snakeCase(name)}`)
  return operator === undefined ? 'pure' : effectsOf(operator)
}

/** `F.relu(x, { inplace: true })`. */
function worksInPlace(node: Node, fn: TargetFunction): boolean {
  if (Object.hasOwn(node.kwargs, 'inplace')) return node.kwargs['inplace'] === true
  const position = targetInfo(fn)?.schema?.args.findIndex((arg) => arg.name === 'inplace') ?? -1
  return position >= 0 && node.args[position] === true
}
