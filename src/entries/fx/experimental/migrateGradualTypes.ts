// tensorfx/fx/experimental/migrateGradualTypes
export * from '../../../fx/experimental/migrateGradualTypes/index.ts'
