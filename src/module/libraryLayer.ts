// The layers of the library, which tracers record as one call. A class says that it is one by a static `layer` of its own with the facts about it,
// which its subclasses do not count as theirs: they may override forward, and a tracer must look into what the user wrote.
import { LEAF_MODULE } from '../protocol/index.ts'
import { getAttribute } from './attributes.ts'

/** The property of all modules that tells. */
export const libraryLayer: PropertyDescriptor = {
  configurable: true,
  get(this: object): boolean {
    return Object.hasOwn(this.constructor, 'layer')
  },
}

/** Whether a module is a layer of the library. */
export const isLibraryLayer = (module: object): boolean => getAttribute(module, LEAF_MODULE) === true
