// Container: an inner node of a GraphModule's attributes; `layer1.0.conv` needs a `layer1` and a `0`.
import { ArgumentError } from '../errors/index.ts'
import { Module } from '../module/index.ts'

/** A module that only holds others. */
export class Container extends Module {
  override getName(): string {
    return 'Module'
  }

  override forward(): never {
    throw new ArgumentError('this module only holds attributes of a GraphModule; call the GraphModule.')
  }
}
