// What a class of layers says about itself.

/** The facts of a class of layers, in a static `layer`. A class with facts of its own is a layer of the library (`isLibraryLayer`); its subclasses use them. */
export interface LayerFacts {
  /** As users write it, for messages: 'nn.Linear'. */
  readonly name: string
}

/** The facts of a layer of a family that differs by the number of dimensions of its lines, images or volumes. */
export interface SpatialFacts extends LayerFacts {
  readonly spatial: number
}

/** The facts of such a layer, and the function that computes it. */
export interface FunctionFacts<F> extends SpatialFacts {
  readonly fn: F
}
