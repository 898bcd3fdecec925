// tensorfx/fx/experimental/unification
export * from '../../../fx/experimental/unification/index.ts'
