// Where a size comes from, as guards write it: `L['x'].size()[0]`.

/** A value among the inputs of a program, by the expression that reads it. */
export interface Source {
  readonly name: string
  /** What it is of a tensor; null for a number that is an input itself. */
  readonly property: 'size' | 'stride' | 'storageOffset' | null
}

/** An input by its name: `L['x']`. */
export const localSource = (name: string): Source => ({ name: `L['${name}']`, property: null })

/** A size or stride of a tensor. */
export function propertySource(tensor: Source, property: 'size' | 'stride' | 'storageOffset', index: number): Source {
  const read = property === 'storageOffset' ? 'storage_offset()' : `${property}()[${index}]`
  return { name: `${tensor.name}.${read}`, property }
}
