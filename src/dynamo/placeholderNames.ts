// Names for the placeholders of captured graphs: parameters and buffers of the module, and tensors among the arguments, as PyTorch spells them.
import { Module } from '../module/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Callable } from './compiledFunction.ts'

/** Names of the outside tensors of a call: `p_fc_weight`, `b_bn_running_mean`, `l_x_`. */
export function placeholderNames(target: Callable | Module, args: readonly unknown[]): Map<Tensor, string> {
  const names = new Map<Tensor, string>()
  if (target instanceof Module) {
    for (const [name, p] of target.namedParameters()) names.set(p as unknown as Tensor, `p_${name.replaceAll('.', '_')}`)
    for (const [name, b] of target.namedBuffers()) names.set(b as unknown as Tensor, `b_${name.replaceAll('.', '_')}`)
  }
  const visit = (value: unknown, path: string): void => {
    if (value instanceof Tensor) {
      if (!names.has(value)) names.set(value, `l_${path}_`)
    } else if (Array.isArray(value)) value.forEach((item, i) => visit(item, `${path}_${i}`))
    else if (value instanceof Map) for (const [key, item] of value) visit(item, `${path}_${String(key)}`)
    else if (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype)
      for (const [key, item] of Object.entries(value)) visit(item, `${path}_${key}`)
  }
  const parameters = parameterNames(String(target instanceof Module ? target.forward : target))
  args.forEach((arg, i) => visit(arg, parameters[i] ?? `args_${i}`))
  return names
}

/** Names of plain parameters, from the source of a function; undefined for patterns. What cannot be read has no names. */
function parameterNames(source: string): (string | undefined)[] {
  const single = /^(?:async\s+)?([\w$]+)\s*=>/.exec(source)
  if (single !== null) return [single[1]]
  const list = /^(?:async\s+)?(?:function\b\s*\*?)?\s*[\w$]*\s*\(([^()]*)\)/.exec(source)
  // A comma inside a pattern or default would be taken for one between parameters.
  if (list === null || /[[{]/.test(list[1] as string)) return []
  return (list[1] as string).split(',').map((part) => /^\s*([\w$]+)\s*(?:=|$)/.exec(part)?.[1])
}
