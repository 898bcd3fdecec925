// Names for the placeholders of captured graphs: parameters and buffers of the module, and tensors among the arguments, as PyTorch spells them.
import { signatureOf } from '../../fx/trace/parameters.ts'
import { Module } from '../../module/index.ts'
import { isObject, isPlainObject } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'

/** Names of the outside tensors of a call: `p_fc_weight`, `b_bn_running_mean`, `l_x_`. */
export function placeholderNames(target: ((...args: never[]) => unknown) | Module, args: readonly unknown[]): Map<Tensor, string> {
  const names = new Map<Tensor, string>()
  if (target instanceof Module) {
    for (const [name, p] of target.namedParameters()) if (p instanceof Tensor) names.set(p, `p_${name.replaceAll('.', '_')}`)
    for (const [name, b] of target.namedBuffers()) if (b instanceof Tensor) names.set(b, `b_${name.replaceAll('.', '_')}`)
  }
  const seen = new Set<unknown>()
  const visit = (value: unknown, path: string): void => {
    if (value instanceof Tensor) {
      if (!names.has(value)) names.set(value, `l_${path}_`)
      return
    }
    // An argument may contain itself.
    if (seen.has(value)) return
    if (isObject(value)) seen.add(value)
    if (Array.isArray(value)) value.forEach((item, i) => visit(item, `${path}_${i}`))
    else if (value instanceof Map) for (const [key, item] of value) visit(item, `${path}_${String(key)}`)
    else if (isPlainObject(value)) for (const [key, item] of Object.entries(value)) visit(item, `${path}_${key}`)
  }
  const { parameters } = signatureOf(target instanceof Module ? target.forward : target)
  args.forEach((arg, i) => visit(arg, parameters[i]?.name ?? `args_${i}`))
  return names
}
