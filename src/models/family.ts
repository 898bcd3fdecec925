// What makes a family loadable: how to make the model of a config.json, and where the tensors of other people's files belong in it.
import type { Module } from '../module/index.ts'
import type { ConfigReader } from './config.ts'

/** Where a tensor of a file goes. */
export interface Destination {
  /** The name in the model's state dict, in PyTorch's spelling. */
  readonly name: string
  /** The rows of that tensor which it fills, where a file keeps parts of it in tensors of their own: part `index` of `count`. */
  readonly part?: { readonly index: number; readonly count: number }
}

/** A family of models, as {@link loadPretrained} needs it. */
export interface Family {
  /** Makes the model of a config. */
  readonly make: (config: ConfigReader) => Module
  /** Where the tensor `name` of a file goes, with names of PyTorch's libraries; null for one that the model does not need. Default: under its own name. */
  readonly destination?: (name: string) => Destination | null
  /** Values of config.json that the model is written for, by key, the usual one first: a config with another one is refused. */
  readonly only?: Readonly<Record<string, readonly string[]>>
}

/** A model that knows its config, so that it can be saved with it. */
export interface Configured {
  /** The family: the `model_type` of config.json. */
  readonly modelType: string
  /** Its sizes, with the names of config.json in camel case. */
  readonly config: object
}
