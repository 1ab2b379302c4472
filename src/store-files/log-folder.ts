/** Name of the log of a store, in the store's folder: a folder, or a link to one elsewhere (SERVICE_LOG_DIR). */
export const logFolder = 'log'
