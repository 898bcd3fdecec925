// Marks the layers of this room as fx leaves: a Tracer records a call of one as a single call_module node.
import type { Module } from '../module/index.ts'
import { LEAF_MODULE } from '../protocol/index.ts'

// eslint-disable-next-line typescript/no-explicit-any -- constructors of any arguments
type LayerClass = abstract new (...args: any[]) => Module

/** Marks classes. A subclass is not a leaf: it may override forward, and a tracer must look into what the user wrote. */
export function markLeaf(...classes: readonly LayerClass[]): void {
  for (const { prototype } of classes) {
    Object.defineProperty(prototype, LEAF_MODULE, {
      configurable: true,
      get(this: object): boolean {
        return Object.getPrototypeOf(this) === prototype
      },
    })
  }
}
