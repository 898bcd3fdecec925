// Names of parameters without the wrappers on their way.
import { checkString } from '../../protocol/index.ts'

/** The name of the wrapped module in parameters' names. */
export const WRAPPED = '_fsdp_wrapped_module'

/** `_fsdp_wrapped_module.net._fsdp_wrapped_module.weight` is `net.weight`. PyTorch's `clean_tensor_name`. */
export function cleanName(name: string): string {
  checkString('cleanName', 'name', name)
  return name
    .split('.')
    .filter((part) => part !== WRAPPED)
    .join('.')
}
