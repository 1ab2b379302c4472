/** The name of a store's log in the folder of the store: a folder, or a link to one (SERVICE_LOG_DIR). */
export const logFolder = 'log'
