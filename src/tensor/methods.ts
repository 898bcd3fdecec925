// Installs methods of Tensor, which are declared next to their implementations, in this room and in those above. The composition root calls it.
import { Tensor } from './tensor.ts'

/** Adds methods and accessors to Tensor, under the keys of `methods`. */
export function installMethods(methods: object): void {
  for (const key of Reflect.ownKeys(methods)) {
    const descriptor = Object.getOwnPropertyDescriptor(methods, key)
    if (descriptor !== undefined) Object.defineProperty(Tensor.prototype, key, { ...descriptor, enumerable: false })
  }
}
