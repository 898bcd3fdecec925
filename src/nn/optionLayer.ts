// Layers that are a function and its options: each option is a property.
import { Module } from '../module/index.ts'
import { readOptions } from './options.ts'

/** A layer whose properties are its options. Subclasses declare them. */
export abstract class OptionLayer extends Module {
  constructor(where: string, defaults: object, given: readonly unknown[]) {
    super()
    Object.assign(this, readOptions(where, defaults, given))
  }
}
